// cross_entropy: the loss of classification from logits and labels, in one stable pass over the logits.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct CrossEntropyAttrs {
  std::int64_t ignore_index = -100;  ///< rows with this label do not count
  double label_smoothing = 0;        ///< e in [0, 1]: the target is (1 - e) of the label and e / C of every class
  bool mean = true;                  ///< over the rows that count; else the sum
};

/// (logits (...,C), labels i64 (...)) -> (loss (), count i64 (): labels not ignored, rows (...,2): each row's maximum
/// and its sum of exp(x - maximum), for the gradient).
struct CrossEntropy {
  using Attrs = CrossEntropyAttrs;
  static constexpr std::string_view name = "cross_entropy";
  static constexpr int outputs = 3;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0, 1}) | keep_outputs({1, 2})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 8};
};

/// (cotangent (), logits, labels, count, rows) -> the gradient of the logits: softmax minus target, over the count.
struct CrossEntropyGrad {
  using Attrs = CrossEntropyAttrs;
  static constexpr std::string_view name = "cross_entropy_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 8};
};

/// The number of labels that count. Throws IndexError naming position, label and C for a label that is neither in
/// [0, C) nor ignored. Blocks nothing: for host data.
std::int64_t check_labels(std::string_view op, std::span<const std::int64_t> labels, std::int64_t classes,
                          std::int64_t ignore_index);

/// Mean over the rows that count (or the sum) of
///   (1 - e) (-log p[label]) + (e / C) sum over classes (-log p[c]),   p = softmax(logits) along the last dim.
/// When no row counts the loss is 0 and the gradient exactly 0. Gradient for the logits.
/// Throws IndexError for a label outside [0, C) that is not ignored, before anything is written; ShapeError, DTypeError
/// (labels are i64), ValueError (smoothing). bf16 and f16 are computed in f32.
template <TensorLike X, TensorLike Y>
auto cross_entropy(const X& logits, const Y& labels, CrossEntropyAttrs attrs = {},
                   const SourceLocation& at = SourceLocation::current()) {
  auto out = apply<CrossEntropy>(attrs, at, logits, labels);
  return ValueOf<X, Y>(std::move(out[0]));
}

template <class V>
struct LossAndCount {
  V loss;
  V count;  ///< i64 (): labels that were not ignored; the weight of this loss in an average over ranks or micro-batches
};

template <TensorLike X, TensorLike Y>
auto cross_entropy_with_count(const X& logits, const Y& labels, CrossEntropyAttrs attrs = {},
                              const SourceLocation& at = SourceLocation::current()) {
  auto out = apply<CrossEntropy>(attrs, at, logits, labels);
  return LossAndCount<ValueOf<X, Y>>{std::move(out[0]), std::move(out[1])};
}

}  // namespace lamina
