#include "lamina/kernels/avg_pool2d/op.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/avg_pool2d/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<AvgPool2d>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(AvgPool2d, "avg_pool2d", avg_pool2d)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<AvgPool2dGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(AvgPool2dGrad, "avg_pool2d_grad", avg_pool2d_grad)};
  return table;
}

}  // namespace lamina
