#include "lamina/kernels/softmax/op.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

Metas infer_softmax(std::string_view op, const SoftmaxAttrs& attrs, MetasIn in) {
  Metas out = infer_same(op, in);
  if (attrs.dim < 0 || attrs.dim >= in[0].shape.rank()) {
    fail<ShapeError>(op, "operand 0: dim {} is outside the rank of {}", attrs.dim, to_string(in[0].shape));
  }
  return out;
}

// Rows along a dim: f(offset of the first element, stride), for each of them, empty ones too.
template <class F>
void for_each_row(const SoftmaxAttrs& attrs, const Shape& shape, F f) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < attrs.dim; ++i) outer *= shape[i];
  for (int i = attrs.dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) f(o * shape[attrs.dim] * inner + i, inner);
  }
}

std::int64_t row_count(const SoftmaxAttrs& attrs, const Shape& shape) { return shape.with(attrs.dim, 1).count(); }

template <class Real>
Real row_maximum(const Real* x, std::int64_t n, std::int64_t stride) {
  Real m(-std::numeric_limits<double>::infinity());
  for (std::int64_t j = 0; j < n; ++j) {
    const Real v = x[j * stride];
    if (v > m || std::isnan(static_cast<double>(v))) m = v;
  }
  // Nothing but -inf: no shift, so that exp gives 0 and not NaN.
  return std::isinf(static_cast<double>(m)) && static_cast<double>(m) < 0 ? Real(0) : m;
}

std::vector<Sample<SoftmaxAttrs>> softmax_samples(int operands) {
  std::vector<Sample<SoftmaxAttrs>> samples;
  auto add = [&](std::string name, int dim, const Shape& shape) {
    samples.push_back(
        {std::move(name), {dim}, std::vector<SampleOperand>(static_cast<std::size_t>(operands), {shape})});
  };
  add("one", 0, {1});
  add("rows", 1, {5, 37});
  add("narrow", 2, {3, 4, 3});
  add("long", 1, {3, 1543});
  add("blocks", 1, {1031, 40});
  add("outer", 0, {41, 9});
  add("middle", 1, {3, 19, 21});
  add("wide", 0, {5, 1037});
  add("column", 1, {7, 6, 1});
  add("no_rows", 1, {0, 4});
  add("no_elements", 1, {4, 0});
  return samples;
}

}  // namespace

Metas Softmax::infer(const Attrs& attrs, MetasIn in) { return infer_softmax(name, attrs, in); }

// An element: compare, subtract, exp, add, divide.
Cost Softmax::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(5, in, out); }

Tensors Softmax::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<SoftmaxGrad>(attrs, {}, cotangents[0], saved.output(0))};
}

template <class Real>
void Softmax::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp;
  const std::int64_t n = in[0].shape[attrs.dim];
  for_each_row(attrs, in[0].shape, [&](std::int64_t at, std::int64_t stride) {
    const Real* x = in[0].real + at;
    Real* y = out[0].real + at;
    const Real m = row_maximum(x, n, stride);
    Real total(0);
    for (std::int64_t j = 0; j < n; ++j) {
      y[j * stride] = exp(x[j * stride] - m);
      total += y[j * stride];
    }
    const bool dead = static_cast<double>(total) == 0;
    for (std::int64_t j = 0; j < n; ++j) y[j * stride] = dead ? Real(0) : y[j * stride] / total;
  });
}

std::vector<Sample<Softmax::Attrs>> Softmax::samples() { return softmax_samples(1); }

LAMINA_INSTANTIATE_REFERENCE(Softmax);

Metas SoftmaxGrad::infer(const Attrs& attrs, MetasIn in) { return infer_softmax(name, attrs, in); }

Cost SoftmaxGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(4, in, out); }

Tensors SoftmaxGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void SoftmaxGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t n = in[0].shape[attrs.dim];
  for_each_row(attrs, in[0].shape, [&](std::int64_t at, std::int64_t stride) {
    const Real* dy = in[0].real + at;
    const Real* y = in[1].real + at;
    Real dot(0);
    for (std::int64_t j = 0; j < n; ++j) dot += dy[j * stride] * y[j * stride];
    for (std::int64_t j = 0; j < n; ++j) out[0].real[at + j * stride] = y[j * stride] * (dy[j * stride] - dot);
  });
}

std::vector<Sample<SoftmaxGrad::Attrs>> SoftmaxGrad::samples() {
  auto samples = softmax_samples(2);
  for (auto& s : samples) {  // sums near 1, as of probabilities
    const Shape& shape = s.inputs[1].shape;
    s.inputs[1].fill = Fill::uniform(0, 2 / std::max(4.0, static_cast<double>(shape[s.attrs.dim])));
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(SoftmaxGrad);

Metas LogSoftmax::infer(const Attrs& attrs, MetasIn in) { return infer_softmax(name, attrs, in); }

// An element: compare, subtract, exp, add; subtract twice. A row: log.
Cost LogSoftmax::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(6 * in[0].shape.count() + row_count(attrs, in[0].shape), in, out);
}

Tensors LogSoftmax::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<LogSoftmaxGrad>(attrs, {}, cotangents[0], saved.output(0))};
}

template <class Real>
void LogSoftmax::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp, std::log;
  const std::int64_t n = in[0].shape[attrs.dim];
  for_each_row(attrs, in[0].shape, [&](std::int64_t at, std::int64_t stride) {
    const Real* x = in[0].real + at;
    const Real m = row_maximum(x, n, stride);
    Real total(0);
    for (std::int64_t j = 0; j < n; ++j) total += exp(x[j * stride] - m);
    const Real log_total = log(total);
    const bool dead = static_cast<double>(total) == 0;
    for (std::int64_t j = 0; j < n; ++j) {
      out[0].real[at + j * stride] = x[j * stride] - m - (dead ? Real(0) : log_total);
    }
  });
}

std::vector<Sample<LogSoftmax::Attrs>> LogSoftmax::samples() { return softmax_samples(1); }

LAMINA_INSTANTIATE_REFERENCE(LogSoftmax);

Metas LogSoftmaxGrad::infer(const Attrs& attrs, MetasIn in) { return infer_softmax(name, attrs, in); }

Cost LogSoftmaxGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(4, in, out); }

Tensors LogSoftmaxGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void LogSoftmaxGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp;
  const std::int64_t n = in[0].shape[attrs.dim];
  for_each_row(attrs, in[0].shape, [&](std::int64_t at, std::int64_t stride) {
    const Real* dy = in[0].real + at;
    Real total(0);
    for (std::int64_t j = 0; j < n; ++j) total += dy[j * stride];
    for (std::int64_t j = 0; j < n; ++j) {
      out[0].real[at + j * stride] = dy[j * stride] - exp(in[1].real[at + j * stride]) * total;
    }
  });
}

std::vector<Sample<LogSoftmaxGrad::Attrs>> LogSoftmaxGrad::samples() {
  auto samples = softmax_samples(2);
  for (auto& s : samples) s.inputs[1].fill = Fill::uniform(-5, 0);
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(LogSoftmaxGrad);

}  // namespace lamina
