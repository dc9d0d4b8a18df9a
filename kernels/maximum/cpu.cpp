#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/maximum/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/maximum/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Maximum>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Maximum, "maximum", maximum)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Minimum>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Minimum, "minimum", minimum)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<MaximumGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(MaximumGrad, "maximum_grad", maximum_grad)};
  return table;
}

}  // namespace lamina
