#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/cpu/elementwise.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/add/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Add>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Add, "add", add)};
  return table;
}

}  // namespace lamina
