#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/max/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/max/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Max>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Max, "max", reduce_max)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Min>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Min, "min", reduce_min)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<ExtremumGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(ExtremumGrad, "extremum_grad", extremum_grad)};
  return table;
}

}  // namespace lamina
