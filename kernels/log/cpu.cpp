#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/log/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/log/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Log>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Log, "log", log_lanes)};
  return table;
}

}  // namespace lamina
