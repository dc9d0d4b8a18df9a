// What elementwise op records share: their shape rules, costs and sample shapes.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

/// Operands of one floating dtype, broadcast together as numpy does. Throws ShapeError, DTypeError.
Metas infer_elementwise(std::string_view op, MetasIn in);

/// As infer_elementwise, but all shapes must be equal (gradients of unary ops).
Metas infer_same(std::string_view op, MetasIn in);

/// `flops` an element of the output.
Cost elementwise_cost(std::int64_t flops, MetasIn in, MetasIn out);

/// Samples of an op of one operand: empty, one, odd, long (several blocks), rank 4.
template <class Attrs>
std::vector<Sample<Attrs>> unary_samples(const Attrs& attrs, Fill fill) {
  return {{"one", attrs, {{Shape{}, fill}}},
          {"empty", attrs, {{{0, 3}, fill}}},
          {"odd", attrs, {{{3, 7}, fill}}},
          {"rank4", attrs, {{{2, 3, 5, 4}, fill}}},
          {"blocks", attrs, {{{40961}, fill}}}};
}

/// Samples of an op of `n` operands of one shape.
template <class Attrs>
std::vector<Sample<Attrs>> same_shape_samples(const Attrs& attrs, std::vector<Fill> fills) {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string name, const Shape& shape) {
    Sample<Attrs> s{std::move(name), attrs, {}};
    for (const Fill& fill : fills) s.inputs.push_back({shape, fill});
    samples.push_back(std::move(s));
  };
  add("one", Shape{});
  add("empty", {0, 3});
  add("odd", {3, 7});
  add("rank4", {2, 3, 5, 4});
  add("blocks", {40961});
  return samples;
}

/// Samples of a broadcasting op of two operands.
template <class Attrs>
std::vector<Sample<Attrs>> broadcast_samples(const Attrs& attrs, Fill a, Fill b) {
  return {{"one", attrs, {{Shape{}, a}, {Shape{}, b}}},  {"empty", attrs, {{{0, 3}, a}, {{3}, b}}},
          {"odd", attrs, {{{3, 7}, a}, {{3, 7}, b}}},    {"scalar", attrs, {{{3, 7}, a}, {Shape{}, b}}},
          {"row", attrs, {{{5, 9}, a}, {{9}, b}}},       {"column", attrs, {{{5, 9}, a}, {{5, 1}, b}}},
          {"outer", attrs, {{{4, 1}, a}, {{1, 17}, b}}}, {"channel", attrs, {{{2, 3, 4, 5}, a}, {{3, 1, 1}, b}}},
          {"left", attrs, {{{6}, a}, {{2, 3, 6}, b}}},   {"blocks", attrs, {{{3, 16385}, a}, {{16385}, b}}}};
}

/// Sums a cotangent over the dims along which an operand of `shape` was broadcast.
Tensor sum_to(Tensor cotangent, const Shape& shape);

}  // namespace lamina
