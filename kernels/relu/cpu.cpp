#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/relu/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/relu/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Relu>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Relu, "relu", relu_lanes)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<ReluGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(ReluGrad, "relu_grad", relu_grad_lanes)};
  return table;
}

}  // namespace lamina
