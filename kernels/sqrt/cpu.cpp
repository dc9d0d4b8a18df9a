#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/sqrt/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/sqrt/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Sqrt>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Sqrt, "sqrt", sqrt_lanes)};
  return table;
}

}  // namespace lamina
