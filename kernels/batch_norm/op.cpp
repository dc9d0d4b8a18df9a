#include "lamina/kernels/batch_norm/op.hpp"

#include <algorithm>
#include <cmath>

#include "lamina/kernels/norm.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

// Operands of one floating dtype, from number 3 on of its statistics'; operand `x` is (N,C,...), those from `first` on
// are (C). Returns C's shape.
Shape check_operands(std::string_view op, const BatchNormAttrs& attrs, MetasIn in, std::size_t x, std::size_t first) {
  check_norm_operands(op, in, 3);
  check_epsilon(op, attrs.epsilon);
  const Shape& shape = in[x].shape;
  if (shape.rank() < 2) fail<ShapeError>(op, "operand {}: {} is not (N,C,...)", x, to_string(shape));
  const Shape channels{shape[1]};
  for (std::size_t i = first; i < in.size(); ++i) check_shape(op, in, i, channels);
  return channels;
}

// The elements of each channel in row-major order: f(channel, index).
template <class F>
void for_each_element(const Shape& shape, F f) {
  std::int64_t space = 1;
  for (int i = 2; i < shape.rank(); ++i) space *= shape[i];
  for (std::int64_t i = 0; i < shape.count(); ++i) f(i / space % shape[1], i);
}

std::int64_t per_channel(const Shape& shape) {
  std::int64_t count = shape[0];
  for (int i = 2; i < shape.rank(); ++i) count *= shape[i];
  return count;
}

template <class Real>
Real inverse_deviation(Real variance, double epsilon) {
  using std::sqrt;
  return Real(1) / sqrt(variance + Real(epsilon));
}

std::vector<Shape> sample_shapes() {
  return {{2, 1},          {5, 3},     {2, 3, 1},   {1, 2, 2},    {3, 2, 37}, {4, 3, 5, 7}, {3, 5, 2, 2},
          {2, 3, 2, 3, 5}, {1031, 40}, {300, 2, 4}, {7, 3, 4801}, {2, 0, 3},  {2, 3, 0}};
}

}  // namespace

Metas BatchNorm::infer(const Attrs& attrs, MetasIn in) {
  const Shape channels = check_operands(name, attrs, in, 0, 1);
  if (per_channel(in[0].shape) == 1) {
    fail<ShapeError>(name, "operand 0: {} has one value per channel, which has no variance", to_string(in[0].shape));
  }
  const DType statistics = accumulator_of(in[0].dtype);
  return {in[0], {channels, statistics}, {channels, statistics}};
}

// An element: 1 for the mean, 3 for the variance, 4 for the result. A channel: two divisions; add, sqrt, divide.
Cost BatchNorm::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(8 * in[0].shape.count() + 5 * in[0].shape[1], in, out);
}

Tensors BatchNorm::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor& x = saved.input(0);
  const Tensor& dy = cotangents[0];
  if (!dy.defined() && !needs[0]) return Tensors(3);
  if (!cotangents[1].defined() && !cotangents[2].defined()) {
    return only_needed(apply<BatchNormGrad>(attrs, {}, dy, x, saved.input(1), saved.output(1), saved.output(2)), needs);
  }
  auto or_zeros = [&](std::size_t o) {
    const Meta& meta = saved.output_meta(o);
    return cotangents[o].defined() ? cotangents[o] : Tensor::zeros(x.device(), meta.shape, meta.dtype);
  };
  Tensors gradients = only_needed(apply<BatchNormGrad>(attrs, {}, or_zeros(0), x, saved.input(1), saved.output(1),
                                                       saved.output(2), or_zeros(1), or_zeros(2)),
                                  needs);
  if (!dy.defined()) gradients[1] = gradients[2] = Tensor();
  return gradients;
}

template <class Real>
void BatchNorm::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& shape = in[0].shape;
  const Real* x = in[0].real;
  Real* mean = out[1].real;
  Real* variance = out[2].real;
  const Real count(static_cast<double>(std::max<std::int64_t>(1, per_channel(shape))));
  for (std::int64_t c = 0; c < shape[1]; ++c) mean[c] = variance[c] = Real(0);
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) { mean[c] += x[i]; });
  for (std::int64_t c = 0; c < shape[1]; ++c) mean[c] /= count;
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) {
    const Real deviation = x[i] - mean[c];
    variance[c] += deviation * deviation;
  });
  std::vector<Real> rstd;
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    variance[c] /= count;
    rstd.push_back(inverse_deviation(variance[c], attrs.epsilon));
  }
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) {
    out[0].real[i] = (x[i] - mean[c]) * rstd[static_cast<std::size_t>(c)] * in[1].real[c] + in[2].real[c];
  });
}

std::vector<Sample<BatchNorm::Attrs>> BatchNorm::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Shape& shape : sample_shapes()) {
    // Two values a channel lie one deviation from their mean, wherever: only epsilon leaves them a gradient.
    const double epsilon = per_channel(shape) == 2 ? 0.5 : 1e-5;
    samples.push_back({to_string(shape), {.epsilon = epsilon}, {{shape}, {{shape[1]}}, {{shape[1]}}}});
  }
  samples.push_back({"no_batch", {}, {{{0, 2, 3}}, {{2}}, {{2}}}});
  samples.push_back({"epsilon", {.epsilon = 0.5}, {{{3, 2, 7}}, {{2}}, {{2}}}});
  // No cancellation in the variance. (Of larger values the mean that backward reads is too coarse in f32.)
  samples.push_back({"offset", {}, {{{3, 2, 300}, Fill::uniform(100, 104)}, {{2}}, {{2}}}});
  samples.push_back({"offset_rows", {}, {{{300, 20}, Fill::uniform(100, 104)}, {{20}}, {{20}}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(BatchNorm);

Metas BatchNormGrad::infer(const Attrs& attrs, MetasIn in) {
  check_operands(name, attrs, in, 1, 2);
  check_shape(name, in, 0, in[1].shape);
  if (in.size() != 5 && in.size() != 7) fail<ShapeError>(name, "{} operands where 5 or 7 are needed", in.size());
  return {in[1], in[2], in[2]};
}

// An element: 5 for the sums, 6 for the result. A channel: rstd 3, its product with gamma, two divisions. With
// cotangents of the statistics 3 more each.
Cost BatchNormGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  const std::int64_t more = in.size() == 7 ? 3 : 0;
  return stream_cost((11 + more) * in[1].shape.count() + (6 + more) * in[1].shape[1], in, out);
}

Tensors BatchNormGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void BatchNormGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& shape = in[1].shape;
  const Real* dy = in[0].real;
  const Real* x = in[1].real;
  const Real* mean = in[3].real;
  Real* dgamma = out[1].real;
  Real* dbeta = out[2].real;
  const Real count(static_cast<double>(std::max<std::int64_t>(1, per_channel(shape))));
  std::vector<Real> rstd, scale, mean_dgamma, mean_dbeta, through_mean, through_variance;
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    dgamma[c] = dbeta[c] = Real(0);
    rstd.push_back(inverse_deviation(in[4].real[c], attrs.epsilon));
  }
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) {
    dgamma[c] += dy[i] * ((x[i] - mean[c]) * rstd[static_cast<std::size_t>(c)]);
    dbeta[c] += dy[i];
  });
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    scale.push_back(in[2].real[c] * rstd[static_cast<std::size_t>(c)]);
    mean_dgamma.push_back(dgamma[c] / count);
    mean_dbeta.push_back(dbeta[c] / count);
    if (in.size() != 7) continue;
    through_mean.push_back(in[5].real[c] / count);
    through_variance.push_back(Real(2) * in[6].real[c] / count);
  }
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) {
    const auto k = static_cast<std::size_t>(c);
    const Real deviation = x[i] - mean[c];
    const Real hat = deviation * rstd[k];
    out[0].real[i] = scale[k] * (dy[i] - mean_dbeta[k] - hat * mean_dgamma[k]);
    // dmean/dx = 1 / n, dvariance/dx = 2 (x - mean) / n.
    if (in.size() == 7) out[0].real[i] += through_mean[k] + deviation * through_variance[k];
  });
}

std::vector<Sample<BatchNormGrad::Attrs>> BatchNormGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  // The sums over a channel do not cancel: of few terms they would have the error of those and not their own.
  auto add = [&](std::string name, const Attrs& attrs, const Shape& shape) {
    const Shape c{shape[1]};
    samples.push_back({std::move(name),
                       attrs,
                       {{shape, Fill::uniform(0.3, 1.7)},
                        {shape, Fill::uniform(-1.7, 0.3)},
                        {c},
                        {c, Fill::uniform(0.5, 1), DType::f32, true},
                        {c, Fill::uniform(0.5, 2), DType::f32, true}}});
  };
  for (const Shape& shape : sample_shapes()) add(to_string(shape), {}, shape);
  add("no_batch", {}, {0, 2, 3});
  add("epsilon", {.epsilon = 0.5}, {3, 2, 7});
  for (const Shape& shape : {Shape{3, 2, 37}, Shape{31, 40}, Shape{0, 2, 3}}) {
    add(fmt::format("statistics of {}", to_string(shape)), {}, shape);
    const SampleOperand cotangent{{shape[1]}, Fill::normal(), DType::f32, true};
    samples.back().inputs.insert(samples.back().inputs.end(), {cotangent, cotangent});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(BatchNormGrad);

Metas BatchNormInference::infer(const Attrs& attrs, MetasIn in) {
  check_operands(name, attrs, in, 0, 1);
  return {in[0]};
}

Cost BatchNormInference::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(4 * in[0].shape.count() + 3 * in[0].shape[1], in, out);
}

Tensors BatchNormInference::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
  return only_needed(apply<BatchNormInferenceGrad>(attrs, {}, cotangents[0], saved.input(0), saved.input(1),
                                                   saved.input(3), saved.input(4)),
                     needs);
}

template <class Real>
void BatchNormInference::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  std::vector<Real> rstd;
  for (std::int64_t c = 0; c < in[0].shape[1]; ++c) rstd.push_back(inverse_deviation(in[4].real[c], attrs.epsilon));
  for_each_element(in[0].shape, [&](std::int64_t c, std::int64_t i) {
    out[0].real[i] =
        (in[0].real[i] - in[3].real[c]) * rstd[static_cast<std::size_t>(c)] * in[1].real[c] + in[2].real[c];
  });
}

std::vector<Sample<BatchNormInference::Attrs>> BatchNormInference::samples() {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string name, const Attrs& attrs, const Shape& shape) {
    const Shape c{shape[1]};
    samples.push_back(
        {std::move(name),
         attrs,
         {{shape}, {c}, {c}, {c, Fill::normal(), DType::f32, true}, {c, Fill::uniform(0.5, 2), DType::f32, true}}});
  };
  for (const Shape& shape : sample_shapes()) add(to_string(shape), {}, shape);
  add("one", {}, {1, 1});
  samples.back().inputs[2].fill = Fill::zeros();  // nothing for a lone result to cancel with
  add("no_batch", {}, {0, 2, 3});
  add("epsilon", {.epsilon = 0.5}, {3, 2, 7});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(BatchNormInference);

Metas BatchNormInferenceGrad::infer(const Attrs& attrs, MetasIn in) {
  check_operands(name, attrs, in, 1, 2);
  check_shape(name, in, 0, in[1].shape);
  return {in[1], in[2], in[2], in[3], in[3]};
}

// An element: 5 for the sums, 1 for the result. A channel: rstd 3, scale 1, dmean 1, dvariance 3.
Cost BatchNormInferenceGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(6 * in[1].shape.count() + 8 * in[1].shape[1], in, out);
}

Tensors BatchNormInferenceGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void BatchNormInferenceGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& shape = in[1].shape;
  std::vector<Real> rstd, scale;
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    rstd.push_back(inverse_deviation(in[4].real[c], attrs.epsilon));
    scale.push_back(in[2].real[c] * rstd.back());
    out[1].real[c] = out[2].real[c] = Real(0);
  }
  for_each_element(shape, [&](std::int64_t c, std::int64_t i) {
    const auto k = static_cast<std::size_t>(c);
    const Real dy = in[0].real[i];
    out[1].real[c] += dy * ((in[1].real[i] - in[3].real[c]) * rstd[k]);
    out[2].real[c] += dy;
    out[0].real[i] = dy * scale[k];
  });
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    const auto k = static_cast<std::size_t>(c);
    out[3].real[c] = -(scale[k] * out[2].real[c]);
    out[4].real[c] = Real(-0.5) * scale[k] * rstd[k] * out[1].real[c];
  }
}

std::vector<Sample<BatchNormInferenceGrad::Attrs>> BatchNormInferenceGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (auto& s : BatchNormGrad::samples()) {
    if (s.inputs.size() == 5) samples.push_back({s.name, s.attrs, s.inputs});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(BatchNormInferenceGrad);

}  // namespace lamina
