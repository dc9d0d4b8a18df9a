#include "lamina/kernels/cross_entropy/op.hpp"

#include <cmath>
#include <limits>

#include "lamina/kernels/norm.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

// Operands `x` (...,C) and `x + 1`: labels (...).
void check_operands(std::string_view op, const CrossEntropyAttrs& attrs, MetasIn in, std::size_t x) {
  if (!(attrs.label_smoothing >= 0 && attrs.label_smoothing <= 1)) {
    fail<ValueError>(op, "label smoothing {} is outside [0, 1]", attrs.label_smoothing);
  }
  const Shape& shape = in[x].shape;
  if (!is_floating(in[x].dtype)) {
    fail<DTypeError>(op, "operand {}: {} is not a floating dtype", x, name_of(in[x].dtype));
  }
  if (in[x + 1].dtype != DType::i64) {
    fail<DTypeError>(op, "operand {}: labels are i64, not {}", x + 1, name_of(in[x + 1].dtype));
  }
  if (shape.rank() == 0) fail<ShapeError>(op, "operand {}: a scalar has no classes", x);
  const Shape rows = shape.removed(shape.rank() - 1);
  if (!(in[x + 1].shape == rows)) {
    fail<ShapeError>(op, "operand {}: labels {} do not match logits {}", x + 1, to_string(in[x + 1].shape),
                     to_string(shape));
  }
}

Shape row_statistics(const Shape& logits) { return logits.with(logits.rank() - 1, 2); }

}  // namespace

std::int64_t check_labels(std::string_view op, std::span<const std::int64_t> labels, std::int64_t classes,
                          std::int64_t ignore_index) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == ignore_index) continue;
    if (labels[i] < 0 || labels[i] >= classes) {
      fail<IndexError>(op, "label {} at position {} is outside [0, {})", labels[i], i, classes);
    }
    ++count;
  }
  return count;
}

Metas CrossEntropy::infer(const Attrs& attrs, MetasIn in) {
  check_operands(name, attrs, in, 0);
  return {{Shape{}, in[0].dtype}, {Shape{}, DType::i64}, {row_statistics(in[0].shape), in[0].dtype}};
}

// A class: compare, subtract, exp, add; smoothing: subtract, subtract, add. A row: log, two subtractions, the sum;
// smoothing: two products and a sum. The loss: one division for the mean.
Cost CrossEntropy::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  const bool smooth = attrs.label_smoothing > 0;
  const std::int64_t rows = in[1].shape.count();
  return stream_cost((smooth ? 7 : 4) * in[0].shape.count() + (smooth ? 7 : 4) * rows + (attrs.mean ? 1 : 0), in, out);
}

Tensors CrossEntropy::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  check_only_first_cotangent(name, cotangents);
  return {apply<CrossEntropyGrad>(attrs, {}, cotangents[0], saved.input(0), saved.input(1), saved.output(1),
                                  saved.output(2)),
          Tensor()};
}

template <class Real>
void CrossEntropy::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp, std::log;
  const std::int64_t rows = in[1].shape.count();
  const std::int64_t classes = in[0].shape.back(1);
  const std::int64_t* labels = in[1].index;
  const std::int64_t count = check_labels(name, {labels, static_cast<std::size_t>(rows)}, classes, attrs.ignore_index);
  Real loss(0);
  for (std::int64_t r = 0; r < rows; ++r) {
    const Real* x = in[0].real + r * classes;
    const bool counts = labels[r] != attrs.ignore_index;
    Real m(-std::numeric_limits<double>::infinity());
    for (std::int64_t c = 0; c < classes; ++c) {
      if (x[c] > m || std::isnan(static_cast<double>(x[c]))) m = x[c];
    }
    Real total(0);
    for (std::int64_t c = 0; c < classes; ++c) total += exp(x[c] - m);
    const Real log_total = log(total);
    const Real at_label = counts ? x[labels[r]] : Real(0);
    Real row = log_total - (at_label - m);
    if (attrs.label_smoothing > 0) {
      Real all(0);
      for (std::int64_t c = 0; c < classes; ++c) all += log_total - (x[c] - m);
      row = Real(1 - attrs.label_smoothing) * row + Real(attrs.label_smoothing / static_cast<double>(classes)) * all;
    }
    loss += counts ? row : Real(0);
    out[2].real[2 * r] = m;
    out[2].real[2 * r + 1] = total;
  }
  if (attrs.mean) loss /= Real(static_cast<double>(count > 0 ? count : 1));
  out[0].real[0] = loss;
  out[1].index[0] = count;
}

std::vector<Sample<CrossEntropy::Attrs>> CrossEntropy::samples() {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string name, const Attrs& attrs, const Shape& shape, std::int64_t lowest = 0) {
    samples.push_back({std::move(name),
                       attrs,
                       {{shape, Fill::normal(3)},
                        {shape.removed(shape.rank() - 1), Fill::index(lowest, shape.back(1)), DType::i64}}});
  };
  add("one", {}, {1});
  add("row", {}, {37});
  add("classes", {}, {128, 10});
  add("rank3", {}, {3, 5, 17});
  add("sum", {.mean = false}, {9, 33});
  add("ignored", {.ignore_index = -1}, {40, 3}, -1);
  add("ignored_class", {.ignore_index = 2}, {40, 5});
  add("smooth", {.ignore_index = -1, .label_smoothing = 0.1}, {21, 19}, -1);
  add("smooth_sum", {.label_smoothing = 1, .mean = false}, {3, 700});
  add("blocks", {}, {1500, 24});
  add("long", {}, {3, 5003});
  add("empty", {}, {0, 4});
  samples.push_back(
      {"all_ignored", {.ignore_index = 7}, {{{5, 4}, Fill::normal()}, {{5}, Fill::index(7, 8), DType::i64}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(CrossEntropy);

Metas CrossEntropyGrad::infer(const Attrs& attrs, MetasIn in) {
  check_operands(name, attrs, in, 1);
  for (const std::size_t i : {std::size_t{0}, std::size_t{4}}) {
    if (in[i].dtype != in[1].dtype) {
      fail<DTypeError>(name, "operand {}: {} does not match {} of the logits", i, name_of(in[i].dtype),
                       name_of(in[1].dtype));
    }
  }
  if (in[3].dtype != DType::i64) fail<DTypeError>(name, "operand 3: the count is i64, not {}", name_of(in[3].dtype));
  check_shape(name, in, 0, Shape{});
  check_shape(name, in, 3, Shape{});
  check_shape(name, in, 4, row_statistics(in[1].shape));
  return {in[1]};
}

// A class: subtract, exp, divide, subtract the smoothing, scale. A row: subtract the label's share. The scale: one
// division for the mean.
Cost CrossEntropyGrad::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(5 * in[1].shape.count() + in[2].shape.count() + (attrs.mean ? 1 : 0), in, out);
}

Tensors CrossEntropyGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void CrossEntropyGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::exp;
  const std::int64_t rows = in[2].shape.count();
  const std::int64_t classes = in[1].shape.back(1);
  const std::int64_t* labels = in[2].index;
  check_labels(name, {labels, static_cast<std::size_t>(rows)}, classes, attrs.ignore_index);
  const std::int64_t count = in[3].index[0];
  Real scale = in[0].real[0];
  if (attrs.mean) scale /= Real(static_cast<double>(count > 0 ? count : 1));
  const Real share(attrs.label_smoothing / static_cast<double>(classes > 0 ? classes : 1));
  for (std::int64_t r = 0; r < rows; ++r) {
    const bool counts = labels[r] != attrs.ignore_index;
    for (std::int64_t c = 0; c < classes; ++c) {
      Real d = exp(in[1].real[r * classes + c] - in[4].real[2 * r]) / in[4].real[2 * r + 1] - share;
      if (counts ? c == labels[r] : c == 0) d -= Real(1 - attrs.label_smoothing);
      d *= scale;
      out[0].real[r * classes + c] = counts ? d : Real(0);
    }
  }
}

std::vector<Sample<CrossEntropyGrad::Attrs>> CrossEntropyGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const auto& s : CrossEntropy::samples()) {
    const std::vector<SampleOperand>& x = s.inputs;
    samples.push_back({s.name,
                       s.attrs,
                       {{Shape{}, Fill::normal()},
                        {x[0].shape, Fill::uniform(-4, 0)},
                        x[1],
                        {Shape{}, Fill::index(1, 50), DType::i64},
                        {row_statistics(x[0].shape), Fill::uniform(1, 3)}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(CrossEntropyGrad);

}  // namespace lamina
