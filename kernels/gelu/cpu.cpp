#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/gelu/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/gelu/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Gelu>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Gelu, "gelu", gelu)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<GeluGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(GeluGrad, "gelu_grad", gelu_grad)};
  return table;
}

}  // namespace lamina
