#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/sigmoid/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/sigmoid/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Sigmoid>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Sigmoid, "sigmoid", sigmoid_lanes)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<SigmoidGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(SigmoidGrad, "sigmoid_grad", sigmoid_grad_lanes)};
  return table;
}

}  // namespace lamina
