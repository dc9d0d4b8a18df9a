#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/layer_norm/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/layer_norm/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<LayerNorm>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS_IF(supports_first, LayerNorm, "layer_norm", layer_norm_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<LayerNormGrad>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS_IF(supports_first, LayerNormGrad, "layer_norm_grad", layer_norm_grad_in)};
  return table;
}

}  // namespace lamina
