#include "lamina/kernels/attention/op.hpp"

#include <cmath>
#include <limits>

#include "lamina/kernels/norm.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The logarithm of nothing's sum. Finite: the difference of two infinities would be NaN.
constexpr double kLogZero = std::numeric_limits<float>::lowest();

DType statistics_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

// Operands `first`, first + 1 and first + 2 are q, k and v.
void check_qkv(std::string_view op, const Attention::Attrs& attrs, MetasIn in, std::size_t first) {
  const Meta& q = in[first];
  for (std::size_t i = first; i < first + 3; ++i) {
    if (!is_floating(in[i].dtype))
      fail<DTypeError>(op, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    if (in[i].dtype != q.dtype) {
      fail<DTypeError>(op, "operand {}: {} does not match {} of q", i, name_of(in[i].dtype), name_of(q.dtype));
    }
    const Shape& s = in[i].shape;
    if (s.rank() != 4) fail<ShapeError>(op, "operand {}: {} is not (batch, heads, length, features)", i, to_string(s));
    if (s[0] != q.shape[0] || s[1] != q.shape[1] || s[3] != q.shape[3]) {
      fail<ShapeError>(op, "operand {}: {} does not match q {} but in length", i, to_string(s), to_string(q.shape));
    }
  }
  if (in[first + 2].shape[2] != in[first + 1].shape[2]) {
    fail<ShapeError>(op, "operand {}: {} values for {} keys", first + 2, in[first + 2].shape[2],
                     in[first + 1].shape[2]);
  }
  if (attrs.causal && in[first + 1].shape[2] != q.shape[2]) {
    fail<ShapeError>(op, "operand {}: {} keys for {} queries; causal needs as many", first + 1, in[first + 1].shape[2],
                     q.shape[2]);
  }
  if (!std::isfinite(attrs.scale)) fail<ValueError>(op, "scale {} is not finite", attrs.scale);
}

// Queries with keys, and (query, key) pairs that meet.
struct Pairs {
  std::int64_t rows, pairs;
};
Pairs pairs_of(const Attention::Attrs& attrs, const Shape& q, const Shape& k) {
  const std::int64_t heads = q[0] * q[1], t = q[2], s = k[2];
  if (attrs.causal) return {heads * t, heads * (t * (t + 1) / 2)};
  return {s == 0 ? 0 : heads * t, heads * t * s};
}

}  // namespace

double attention_scale(const Attention::Attrs& attrs, std::int64_t features) {
  if (attrs.scale != 0) return attrs.scale;
  return features == 0 ? 1 : 1 / std::sqrt(static_cast<double>(features));
}

Metas Attention::infer(const Attrs& attrs, MetasIn in) {
  check_qkv(name, attrs, in, 0);
  const Shape& q = in[0].shape;
  return {in[0], {Shape{q[0], q[1], q[2]}, statistics_dtype(in[0].dtype)}};
}

// A pair: two products over the features; scale, compare, subtract, exp, add. A query: divide, logarithm, add.
Cost Attention::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  const std::int64_t d = in[0].shape[3];
  const Pairs p = pairs_of(attrs, in[0].shape, in[1].shape);
  return stream_cost(p.pairs * (4 * d + 5) + p.rows * (d + 2), in, out);
}

Tensors Attention::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor &q = saved.input(0), &k = saved.input(1), &v = saved.input(2), &y = saved.output(0);
  const Tensor& lse = saved.output(1);
  const Tensor dy = cotangents[0].defined() ? cotangents[0] : Tensor::zeros(y.device(), y.shape(), y.dtype());
  return only_needed(cotangents[1].defined() ? apply<AttentionGrad>(attrs, {}, dy, q, k, v, y, lse, cotangents[1])
                                             : apply<AttentionGrad>(attrs, {}, dy, q, k, v, y, lse),
                     needs);
}

template <class Real>
void Attention::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp, std::log;
  const std::int64_t heads = in[0].shape[0] * in[0].shape[1], t = in[0].shape[2], s = in[1].shape[2],
                     d = in[0].shape[3];
  const Real scale(attention_scale(attrs, d));
  for (std::int64_t row = 0; row < heads * t; ++row) {
    const Real* q = in[0].real + row * d;
    const Real* k = in[1].real + row / t * s * d;
    const Real* v = in[2].real + row / t * s * d;
    Real* y = out[0].real + row * d;
    const std::int64_t keys = attrs.causal ? row % t + 1 : s;
    std::vector<Real> p;
    Real largest(-kInfinity);
    for (std::int64_t j = 0; j < keys; ++j) {
      Real score(0);
      for (std::int64_t c = 0; c < d; ++c) score += q[c] * k[j * d + c];
      score *= scale;
      p.push_back(score);
      if (score > largest) largest = score;
    }
    for (std::int64_t c = 0; c < d; ++c) y[c] = Real(0);
    out[1].real[row] = Real(kLogZero);
    if (static_cast<double>(largest) == -kInfinity) continue;
    Real sum(0);
    for (Real& x : p) {
      x = exp(x - largest);
      sum += x;
    }
    for (std::int64_t c = 0; c < d; ++c) {
      for (std::int64_t j = 0; j < keys; ++j) y[c] += p[static_cast<std::size_t>(j)] * v[j * d + c];
      y[c] /= sum;
    }
    out[1].real[row] = largest + log(sum);
  }
}

std::vector<Sample<Attention::Attrs>> Attention::samples() {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string label, const Attrs& attrs, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s,
                 std::int64_t d) {
    samples.push_back({std::move(label), attrs, {{{b, h, t, d}}, {{b, h, s, d}}, {{b, h, s, d}}}});
  };
  add("one", {}, 1, 1, 1, 1, 1);
  add("empty", {}, 0, 2, 3, 3, 4);
  add("no_queries", {}, 1, 2, 0, 3, 4);
  add("no_keys", {}, 1, 2, 3, 0, 4);
  add("no_features", {}, 1, 1, 2, 3, 0);
  add("odd", {}, 2, 3, 5, 7, 3);
  add("odd_causal", {.causal = true}, 2, 2, 7, 7, 5);
  add("one_query", {}, 1, 2, 1, 19, 17);
  add("scaled", {.scale = 1.5}, 1, 1, 6, 5, 4);
  add("causal_scaled", {.causal = true, .scale = -0.7}, 1, 1, 6, 6, 4);
  add("blocks", {}, 1, 1, 37, 150, 16);
  add("blocks_causal", {.causal = true}, 1, 2, 139, 139, 5);
  add("wide", {}, 1, 1, 9, 20, 35);
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Attention);

Metas AttentionGrad::infer(const Attrs& attrs, MetasIn in) {
  if (in.size() != 6 && in.size() != 7) fail<ShapeError>(name, "{} operands given, 6 or 7 wanted", in.size());
  check_qkv(name, attrs, in, 1);
  const Meta& q = in[1];
  for (const std::size_t i : {std::size_t{0}, std::size_t{4}}) {
    if (in[i].dtype != q.dtype) {
      fail<DTypeError>(name, "operand {}: {} does not match {} of q", i, name_of(in[i].dtype), name_of(q.dtype));
    }
    if (!(in[i].shape == q.shape)) {
      fail<ShapeError>(name, "operand {}: {} does not match q {}", i, to_string(in[i].shape), to_string(q.shape));
    }
  }
  for (std::size_t i = 5; i < in.size(); ++i) {
    if (in[i].dtype != statistics_dtype(q.dtype)) {
      fail<DTypeError>(name, "operand {}: {}, {} wanted for q of {}", i, name_of(in[i].dtype),
                       name_of(statistics_dtype(q.dtype)), name_of(q.dtype));
    }
    if (!(in[i].shape == Shape{q.shape[0], q.shape[1], q.shape[2]})) {
      fail<ShapeError>(name, "operand {}: {} does not match q {}", i, to_string(in[i].shape), to_string(q.shape));
    }
  }
  return {in[1], in[2], in[3]};
}

// A pair: five products over the features; scale, subtract, exp, subtract, multiply, scale. A query: dy . y.
Cost AttentionGrad::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  const Shape& q = in[1].shape;
  const std::int64_t d = q[3];
  const Pairs p = pairs_of(attrs, q, in[2].shape);
  const std::int64_t rows = q[0] * q[1] * q[2];
  return stream_cost(p.pairs * (10 * d + 6) + rows * (2 * d + (in.size() == 7 ? 1 : 0)), in, out);
}

Tensors AttentionGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void AttentionGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp;
  const Shape& shape = in[1].shape;
  const std::int64_t rows = shape[0] * shape[1] * shape[2], t = shape[2], s = in[2].shape[2], d = shape[3];
  const Real scale(attention_scale(attrs, d));
  for (std::size_t o = 0; o < 3; ++o) {
    for (std::int64_t i = 0; i < out[o].shape.count(); ++i) out[o].real[i] = Real(0);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row / t * s * d;
    const Real *dy = in[0].real + row * d, *q = in[1].real + row * d, *y = in[4].real + row * d;
    Real* dq = out[0].real + row * d;
    Real delta(0);
    for (std::int64_t c = 0; c < d; ++c) delta += dy[c] * y[c];
    if (in.size() == 7) delta -= in[6].real[row];
    const Real lse = in[5].real[row];
    const std::int64_t keys = attrs.causal ? row % t + 1 : s;
    if (static_cast<double>(lse) <= kLogZero) continue;
    for (std::int64_t j = 0; j < keys; ++j) {
      const Real *k = in[2].real + head + j * d, *v = in[3].real + head + j * d;
      Real *dk = out[1].real + head + j * d, *dv = out[2].real + head + j * d;
      Real score(0), dp(0);
      for (std::int64_t c = 0; c < d; ++c) score += q[c] * k[c];
      for (std::int64_t c = 0; c < d; ++c) dp += dy[c] * v[c];
      const Real p = exp(score * scale - lse);
      const Real ds = p * (dp - delta) * scale;
      for (std::int64_t c = 0; c < d; ++c) dq[c] += ds * k[c];
      for (std::int64_t c = 0; c < d; ++c) dk[c] += ds * q[c];
      for (std::int64_t c = 0; c < d; ++c) dv[c] += p * dy[c];
    }
  }
}

std::vector<Sample<AttentionGrad::Attrs>> AttentionGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string label, const Attrs& attrs, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t s,
                 std::int64_t d, bool dlse, DType dtype = DType::f32) {
    const SampleOperand query{{b, h, t, d}, Fill::normal(), dtype}, key{{b, h, s, d}, Fill::normal(), dtype};
    // Probabilities are exp(score - logsumexp): keep them in proportion to the number of keys.
    const double middle = std::log(static_cast<double>(s) + 1) + 0.5;
    Sample<Attrs> sample{std::move(label), attrs, {query, query, key, key, query}};
    sample.inputs.push_back({{b, h, t}, Fill::uniform(middle, middle + 1)});
    if (dlse) sample.inputs.push_back({{b, h, t}});
    samples.push_back(std::move(sample));
  };
  add("one", {}, 1, 1, 1, 1, 1, true);
  add("empty", {}, 0, 2, 3, 3, 4, false);
  add("no_queries", {}, 1, 2, 0, 3, 4, false);
  add("no_keys", {}, 1, 2, 3, 0, 4, true);
  add("odd", {}, 2, 3, 5, 7, 3, true);
  add("odd_causal", {.causal = true}, 2, 2, 7, 7, 5, false);
  add("scaled", {.scale = 0.7}, 1, 1, 6, 5, 4, false);
  add("blocks", {}, 1, 1, 37, 150, 16, false);
  add("blocks_causal", {.causal = true}, 1, 2, 139, 139, 5, true);
  add("wide", {}, 1, 1, 9, 20, 35, true);
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const std::string suffix = fmt::format("_{}", name_of(dtype));
    add("odd" + suffix, {}, 2, 3, 5, 7, 3, true, dtype);
    add("blocks" + suffix, {.causal = true}, 1, 1, 39, 39, 17, false, dtype);
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(AttentionGrad);

}  // namespace lamina
