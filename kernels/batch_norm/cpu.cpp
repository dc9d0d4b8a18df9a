#include "lamina/kernels/batch_norm/op.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

// x (N,C,...) as N x C runs of `space` neighbouring elements.
struct Channels {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t space = 1;
  std::int64_t width() const noexcept { return channels * space; }
  std::int64_t per_channel() const noexcept { return batch * space; }
};
Channels channels_of(const Shape& shape) {
  Channels c{shape[0], shape[1]};
  for (int i = 2; i < shape.rank(); ++i) c.space *= shape[i];
  return c;
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/batch_norm/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<BatchNorm>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS_IF(supports_first, BatchNorm, "batch_norm", batch_norm_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<BatchNormGrad>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS_IF(supports_first, BatchNormGrad, "batch_norm_grad", batch_norm_grad_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<BatchNormInference>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS_IF(supports_first, BatchNormInference, "batch_norm_inference", batch_norm_inference_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<BatchNormInferenceGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS_IF(
      supports_first, BatchNormInferenceGrad, "batch_norm_inference_grad", batch_norm_inference_grad_in)};
  return table;
}

}  // namespace lamina
