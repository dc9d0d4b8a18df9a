#include "lamina/nn/init.hpp"

#include "lamina/core/rng.hpp"
#include "lamina/kernels/copy/op.hpp"

namespace lamina::nn {

namespace {

template <class F>
Tensor make(const Builder& builder, const Shape& shape, F value) {
  // A device without storage gets its shape only.
  const std::int64_t count = builder.device.state()->has_storage ? shape.count() : 0;
  Tensor out = Tensor::empty(builder.device, shape, DType::f32);
  if (count > 0) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(value(i));
    out = Tensor::from(builder.device, shape, values);
  }
  return builder.dtype == DType::f32 ? out : cast(out, builder.dtype);
}

}  // namespace

Tensor init_normal(const Builder& builder, const Shape& shape, double std, std::uint64_t layer, std::uint64_t which) {
  const Rng rng(builder.seed, layer, which);
  return make(builder, shape, [&](std::size_t i) { return std * rng.normal(0, i); });
}

Tensor init_uniform(const Builder& builder, const Shape& shape, double bound, std::uint64_t layer,
                    std::uint64_t which) {
  const Rng rng(builder.seed, layer, which);
  return make(builder, shape,
              [&](std::size_t i) { return bound * (2.0 * static_cast<double>(rng.uniform(0, i)) - 1); });
}

Tensor init_constant(const Builder& builder, const Shape& shape, double value) {
  return make(builder, shape, [&](std::size_t) { return value; });
}

}  // namespace lamina::nn
