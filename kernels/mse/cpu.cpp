#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/mse/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/mse/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Mse>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Mse, "mse", mse)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<MseGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(MseGrad, "mse_grad", mse_grad)};
  return table;
}

}  // namespace lamina
