#include "lamina/kernels/sum/op.hpp"

#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Sum>() {
  return {};
}

}  // namespace lamina
