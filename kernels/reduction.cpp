#include "lamina/kernels/reduction.hpp"

namespace lamina {

namespace {
bool reduces(const ReduceAttrs& attrs, int dim) { return (attrs.axes >> dim & 1u) != 0; }
}  // namespace

ReduceAttrs all_axes(const Shape& shape) { return {(1u << shape.rank()) - 1u, false}; }

ReduceAttrs reduce_axes(std::string_view op, const Shape& shape, std::span<const int> dims, bool keep) {
  ReduceAttrs attrs{0, keep};
  for (const int given : dims) {
    const int dim = normalize_dim(op, given, shape.rank());
    if (reduces(attrs, dim)) fail<ShapeError>(op, "dim {} is listed twice", dim);
    attrs.axes |= 1u << dim;
  }
  return attrs;
}

Metas infer_reduction(std::string_view op, const ReduceAttrs& attrs, MetasIn in) {
  if (!is_floating(in[0].dtype)) fail<DTypeError>(op, "{} is not a floating dtype", name_of(in[0].dtype));
  const Shape& shape = in[0].shape;
  if ((attrs.axes >> shape.rank()) != 0) {
    fail<ShapeError>(op, "axes mask {:#x} is beyond the rank of {}", attrs.axes, to_string(shape));
  }
  InlineVector<std::int64_t, kMaxRank> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduces(attrs, i)) dims.push_back(shape[i]);
    if (reduces(attrs, i) && attrs.keep) dims.push_back(1);
  }
  return {{Shape(std::span<const std::int64_t>(dims.data(), dims.size())), in[0].dtype}};
}

Shape kept_shape(const ReduceAttrs& attrs, const Shape& in) {
  InlineVector<std::int64_t, kMaxRank> dims;
  for (int i = 0; i < in.rank(); ++i) dims.push_back(reduces(attrs, i) ? 1 : in[i]);
  return Shape(std::span<const std::int64_t>(dims.data(), dims.size()));
}

std::int64_t reduced_count(const ReduceAttrs& attrs, const Shape& in) {
  std::int64_t count = 1;
  for (int i = 0; i < in.rank(); ++i) {
    if (reduces(attrs, i)) count *= in[i];
  }
  return count;
}

void check_reduces_something(std::string_view op, const ReduceAttrs& attrs, const Shape& in) {
  if (reduced_count(attrs, in) == 0) fail<ShapeError>(op, "operand 0: {} has nothing to reduce", to_string(in));
}

std::vector<Sample<ReduceAttrs>> reduction_samples(Fill fill, bool empty_allowed) {
  std::vector<Sample<ReduceAttrs>> samples = {
      {"scalar", {0, false}, {{Shape{}, fill}}},        {"none", {0, false}, {{{3, 5}, fill}}},
      {"inner", {2, false}, {{{5, 37}, fill}}},         {"inner_kept", {2, true}, {{{5, 37}, fill}}},
      {"outer", {1, false}, {{{41, 9}, fill}}},         {"middle", {2, false}, {{{3, 19, 5}, fill}}},
      {"ends", {5, true}, {{{7, 4, 11}, fill}}},        {"channel", {13, false}, {{{3, 4, 5, 6}, fill}}},
      {"all", {7, false}, {{{3, 4, 5}, fill}}},         {"long_inner", {1, false}, {{{40961}, fill}}},
      {"tall_outer", {1, false}, {{{20011, 3}, fill}}}, {"empty_kept", {2, false}, {{{0, 4}, fill}}},
  };
  if (empty_allowed) samples.push_back({"empty", {1, false}, {{{0, 4}, fill}}});
  return samples;
}

}  // namespace lamina
