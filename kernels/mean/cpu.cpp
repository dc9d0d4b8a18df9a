#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/mean/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/mean/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Mean>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Mean, "mean", mean)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<MeanGrad>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(MeanGrad, "mean_grad", mean_grad)};
  return table;
}

}  // namespace lamina
