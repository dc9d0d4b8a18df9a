#include "lamina/kernels/layer_norm/op.hpp"

#include <cmath>

#include "lamina/kernels/norm.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

// The one shape rule of forward and backward: rows of D elements.
struct RowShape {
  Shape outer;
  std::int64_t width;
};
RowShape row_shape(std::string_view op, std::size_t operand, const Shape& shape) {
  if (shape.rank() == 0 || shape.back(1) == 0) {
    fail<ShapeError>(op, "operand {}: {} has no elements along the last dim", operand, to_string(shape));
  }
  return {shape.removed(shape.rank() - 1), shape.back(1)};
}

std::vector<Shape> sample_shapes() {
  return {{1},   {37}, {5, 1}, {3, 7}, {2, 3, 64}, {1031, 33}, {3, 1100}, {2, 1, 3, 2, 9}, {1, 1, 2, 1, 1, 3, 1, 5},
          {0, 4}};
}

}  // namespace

Metas LayerNorm::infer(const Attrs& attrs, MetasIn in) {
  check_norm_operands(name, in, in.size());
  check_epsilon(name, attrs.epsilon);
  const auto [outer, width] = row_shape(name, 0, in[0].shape);
  check_shape(name, in, 1, {width});
  check_shape(name, in, 2, {width});
  const DType statistics = accumulator_of(in[0].dtype);
  return {in[0], {outer, statistics}, {outer, statistics}};
}

// An element: 1 for the mean, 3 for the variance, 4 for the result. A row: two divisions; add, sqrt, divide.
Cost LayerNorm::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(8 * in[0].shape.count() + 5 * out[1].shape.count(), in, out);
}

Tensors LayerNorm::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  check_only_first_cotangent(name, cotangents);
  return only_needed(
      apply<LayerNormGrad>({}, {}, cotangents[0], saved.input(0), saved.input(1), saved.output(1), saved.output(2)),
      needs);
}

template <class Real>
void LayerNorm::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::sqrt;
  const std::int64_t d = in[0].shape.back(1);
  for (std::int64_t r = 0; r < out[1].shape.count(); ++r) {
    const Real* x = in[0].real + r * d;
    Real mean(0), variance(0);
    for (std::int64_t j = 0; j < d; ++j) mean += x[j];
    mean /= Real(static_cast<double>(d));
    for (std::int64_t j = 0; j < d; ++j) {
      const Real c = x[j] - mean;
      variance += c * c;
    }
    variance /= Real(static_cast<double>(d));
    const Real rstd = Real(1) / sqrt(variance + Real(attrs.epsilon));
    for (std::int64_t j = 0; j < d; ++j) {
      out[0].real[r * d + j] = (x[j] - mean) * rstd * in[1].real[j] + in[2].real[j];
    }
    out[1].real[r] = mean;
    out[2].real[r] = rstd;
  }
}

std::vector<Sample<LayerNorm::Attrs>> LayerNorm::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Shape& shape : sample_shapes()) {
    const Shape width{shape.back(1)};
    samples.push_back({to_string(shape), {}, {{shape}, {width}, {width}}});
  }
  samples.push_back({"epsilon", {.epsilon = 0.5}, {{{3, 7}}, {{7}}, {{7}}}});
  // No cancellation in the variance.
  samples.push_back({"offset", {}, {{{3, 300}, Fill::uniform(1e3, 1e3 + 4)}, {{300}}, {{300}}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(LayerNorm);

Metas LayerNormGrad::infer(const Attrs&, MetasIn in) {
  check_norm_operands(name, in, 3);
  const auto [outer, width] = row_shape(name, 1, in[1].shape);
  check_shape(name, in, 0, in[1].shape);
  check_shape(name, in, 2, {width});
  check_shape(name, in, 3, outer);
  check_shape(name, in, 4, outer);
  return {in[1], in[2], in[2]};
}

// An element: 9 for the four sums, 4 for the result. A row: two divisions.
Cost LayerNormGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(13 * in[1].shape.count() + 2 * in[3].shape.count(), in, out);
}

Tensors LayerNormGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void LayerNormGrad::reference(const Attrs&, In<Real> in, Out<Real> out) {
  const std::int64_t d = in[1].shape.back(1);
  for (std::int64_t j = 0; j < d; ++j) out[1].real[j] = out[2].real[j] = Real(0);
  for (std::int64_t r = 0; r < in[3].shape.count(); ++r) {
    const Real mean = in[3].real[r], rstd = in[4].real[r];
    std::vector<Real> hat, g;
    Real mean_g(0), mean_hg(0);
    for (std::int64_t j = 0; j < d; ++j) {
      const Real dy = in[0].real[r * d + j];
      hat.push_back((in[1].real[r * d + j] - mean) * rstd);
      g.push_back(dy * in[2].real[j]);
      mean_g += g.back();
      mean_hg += hat.back() * g.back();
      out[1].real[j] += dy * hat.back();
      out[2].real[j] += dy;
    }
    mean_g /= Real(static_cast<double>(d));
    mean_hg /= Real(static_cast<double>(d));
    for (std::int64_t j = 0; j < d; ++j) {
      const auto i = static_cast<std::size_t>(j);
      out[0].real[r * d + j] = rstd * (g[i] - mean_g - hat[i] * mean_hg);
    }
  }
}

std::vector<Sample<LayerNormGrad::Attrs>> LayerNormGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Shape& shape : sample_shapes()) {
    const Shape width{shape.back(1)}, outer = shape.removed(shape.rank() - 1);
    // The sums over the rows do not cancel (of few terms they would have the error of those and not their own), and
    // there are no outliers, whose error is large beside the other elements.
    samples.push_back({to_string(shape),
                       {},
                       {{shape, Fill::uniform(0.3, 1.7)},
                        {shape, Fill::uniform(-1.7, 0.3)},
                        {width, Fill::uniform(-1.7, 1.7)},
                        {outer, Fill::uniform(0.5, 1), DType::f32, true},
                        {outer, Fill::uniform(0.5, 2), DType::f32, true}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(LayerNormGrad);

}  // namespace lamina
