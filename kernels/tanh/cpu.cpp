#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/tanh/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/tanh/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Tanh>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Tanh, "tanh", tanh_lanes)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<TanhGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(TanhGrad, "tanh_grad", tanh_grad_lanes)};
  return table;
}

}  // namespace lamina
