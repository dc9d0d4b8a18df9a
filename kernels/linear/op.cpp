#include "lamina/kernels/linear/op.hpp"

#include <algorithm>
#include <cmath>

#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/matmul/op.hpp"
#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/relu/op.hpp"
#include "lamina/kernels/sigmoid/op.hpp"
#include "lamina/kernels/sum/op.hpp"
#include "lamina/kernels/tanh/op.hpp"

namespace lamina {

namespace {

Metas infer_linear(std::string_view op, MetasIn in) {
  if (in.size() != 2 && in.size() != 3)
    fail<ShapeError>(op, "{} operands given; x, weight and maybe bias wanted", in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i].dtype))
      fail<DTypeError>(op, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    if (in[i].dtype != in[0].dtype) {
      fail<DTypeError>(op, "operand {}: {} does not match {} of operand 0", i, name_of(in[i].dtype),
                       name_of(in[0].dtype));
    }
  }
  const Shape &x = in[0].shape, &weight = in[1].shape;
  if (x.rank() < 1) fail<ShapeError>(op, "operand 0: a scalar has no features");
  if (weight.rank() != 2) fail<ShapeError>(op, "operand 1: weight {} is not (out, in)", to_string(weight));
  if (x.back(1) != weight[1]) {
    fail<ShapeError>(op, "operand 1: weight {} does not match the {} features of {}", to_string(weight), x.back(1),
                     to_string(x));
  }
  if (in.size() == 3 && !(in[2].shape == Shape{weight[0]})) {
    fail<ShapeError>(op, "operand 2: bias {} does not match weight {}", to_string(in[2].shape), to_string(weight));
  }
  return {{x.with(x.rank() - 1, weight[0]), in[0].dtype}};
}

std::int64_t linear_flops(MetasIn in, const Shape& out) {
  return out.count() * (2 * in[1].shape[1] + (in.size() == 3 ? 1 : 0));
}

Tensor as_rows(const Tensor& t) {
  const std::int64_t columns = t.shape().back(1);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < t.shape().rank(); ++i) rows *= t.shape()[i];
  return contiguous(t).view(Shape{rows, columns});
}

// `g`: the cotangent of the sums.
Tensors linear_vjp(const Saved& saved, const Tensor& g, Needs needs) {
  Tensors gradients(saved.inputs());
  if (needs[0]) {
    const Tensor dx = matmul(as_rows(g), saved.input(1));
    gradients[0] = dx.view(saved.input_meta(0).shape);
  }
  if (needs[1]) gradients[1] = matmul(as_rows(g), as_rows(saved.input(0)), {.transpose_a = true});
  if (saved.inputs() == 3 && needs[2]) gradients[2] = sum(as_rows(g), {0});
  return gradients;
}

template <class Real, class F>
void linear_reference(In<Real> in, Out<Real> out, F activate) {
  const std::int64_t features = in[1].shape[1], columns = in[1].shape[0];
  for (std::int64_t n = 0; n < out[0].shape.count(); ++n) {
    const Real* x = in[0].real + n / columns * features;
    const Real* w = in[1].real + n % columns * features;
    Real y(0);
    for (std::int64_t i = 0; i < features; ++i) y += x[i] * w[i];
    if (in.size() == 3) y += in[2].real[n % columns];
    out[0].real[n] = activate(y);
  }
}

// What the activation gets. With relu, sums must stay away from 0, or differences are no derivative: the bias outweighs
// the product, and without a bias all terms are positive. Where tanh and sigmoid come near their limits, the result's
// last place is all that is left of the gradient.
enum class Before : std::uint8_t { any, away_from_zero, small };

template <class Attrs>
std::vector<Sample<Attrs>> linear_samples(const Attrs& attrs, const std::string& label, Before before) {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string name, const Shape& x, std::int64_t columns, bool bias) {
    Fill factor = Fill::normal(), offset = Fill::normal();
    if (before == Before::away_from_zero) {
      const double largest = 0.25 * static_cast<double>(x.back(1)) + 0.1;
      factor = bias ? Fill::uniform(-0.5, 0.5) : Fill::uniform(0.2, 1);
      offset = Fill::uniform(-2 * largest, 2 * largest).away_from(0, largest);
    }
    if (before == Before::small) {
      const double largest = 1.1 / std::pow(std::max(1.0, static_cast<double>(x.back(1))), 0.25);
      factor = Fill::uniform(-largest, largest);
      offset = Fill::uniform(-0.3, 0.3);
    }
    Sample<Attrs> s{name + label, attrs, {{x, factor}, {{columns, x.back(1)}, factor}}};
    if (bias) s.inputs.push_back({{columns}, offset});
    samples.push_back(std::move(s));
  };
  add("vector", {5}, 7, true);
  add("one", {1, 1}, 1, true);
  add("one_feature", {9, 19}, 1, true);
  add("one_row", {1, 21}, 35, true);
  add("odd", {7, 5}, 37, true);
  add("no_bias", {3, 4}, 18, false);
  add("rank4", {2, 3, 2, 6}, 5, true);
  add("empty", {0, 3}, 4, true);
  add("no_features", {2, 0}, 3, true);
  add("no_columns", {2, 3}, 0, true);
  add("tall", {190, 3}, 34, true);
  return samples;
}

}  // namespace

Metas Linear::infer(const Attrs&, MetasIn in) { return infer_linear(name, in); }

Cost Linear::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(linear_flops(in, out[0].shape), in, out);
}

Tensors Linear::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  return linear_vjp(saved, cotangents[0], needs);
}

template <class Real>
void Linear::reference(const Attrs&, In<Real> in, Out<Real> out) {
  linear_reference(in, out, [](Real y) { return y; });
}

std::vector<Sample<Linear::Attrs>> Linear::samples() {
  auto samples = linear_samples(Attrs{}, "", Before::any);
  samples.push_back({"blocks", {}, {{{31, 270}}, {{70, 270}}, {{70}}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Linear);

Metas LinearActivated::infer(const Attrs& attrs, MetasIn in) {
  if (attrs.activation == Activation::none || attrs.activation > Activation::sigmoid) {
    fail<ValueError>(name, "activation {} is not fused; relu, tanh and sigmoid are",
                     static_cast<int>(attrs.activation));
  }
  return infer_linear(name, in);
}

// relu: a comparison. sigmoid: exp, add, divide.
Cost LinearActivated::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  const std::int64_t each = attrs.activation == Activation::sigmoid ? 3 : 1;
  return stream_cost(linear_flops(in, out[0].shape) + each * out[0].shape.count(), in, out);
}

Tensors LinearActivated::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor &dy = cotangents[0], &y = saved.output(0);
  const Tensor g = attrs.activation == Activation::relu   ? apply<ReluGrad>({}, {}, dy, y)
                   : attrs.activation == Activation::tanh ? apply<TanhGrad>({}, {}, dy, y)
                                                          : apply<SigmoidGrad>({}, {}, dy, y);
  return linear_vjp(saved, g, needs);
}

template <class Real>
void LinearActivated::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp, std::tanh;
  linear_reference(in, out, [&](Real y) {
    if (attrs.activation == Activation::relu) return y < Real(0) ? Real(0) : y;
    if (attrs.activation == Activation::tanh) return tanh(y);
    return Real(1) / (Real(1) + exp(-y));
  });
}

std::vector<Sample<LinearActivated::Attrs>> LinearActivated::samples() {
  auto samples = linear_samples(Attrs{Activation::relu}, "_relu", Before::away_from_zero);
  for (auto& s : linear_samples(Attrs{Activation::tanh}, "_tanh", Before::small)) samples.push_back(std::move(s));
  for (auto& s : linear_samples(Attrs{Activation::sigmoid}, "_sigmoid", Before::small)) samples.push_back(std::move(s));
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(LinearActivated);

}  // namespace lamina
