// Initial values of parameters. Element i of layer l is a pure function of (seed, l, i): the same on every device and
// however a model is split.
#pragma once

#include <cmath>

#include "lamina/nn/module.hpp"

namespace lamina::nn {

/// N(0, std^2).
Tensor init_normal(const Builder& builder, const Shape& shape, double std, std::uint64_t layer,
                   std::uint64_t which = 0);
/// U(-bound, bound).
Tensor init_uniform(const Builder& builder, const Shape& shape, double bound, std::uint64_t layer,
                    std::uint64_t which = 0);
Tensor init_constant(const Builder& builder, const Shape& shape, double value);

/// He et al. 2015: std = sqrt(2 / fan_in), for layers followed by relu.
inline double he_std(std::int64_t fan_in) { return fan_in > 0 ? std::sqrt(2.0 / static_cast<double>(fan_in)) : 0; }
/// Bound of the uniform distribution of variance 1 / (3 fan_in), common for biases: 1 / sqrt(fan_in).
inline double fan_in_bound(std::int64_t fan_in) { return fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0; }

}  // namespace lamina::nn
