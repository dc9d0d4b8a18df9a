// What reduction op records share: the axes attribute, its shape rule, and the naive loop of the references.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

struct ReduceAttrs {
  std::uint32_t axes = 0;  ///< bit i: dim i is reduced. No bits: the op copies
  bool keep = false;       ///< reduced dims stay, with extent 1
};

/// All dims of `shape`.
ReduceAttrs all_axes(const Shape& shape);
/// The dims listed; negative counts from the end. Throws ShapeError for one outside the rank or listed twice.
ReduceAttrs reduce_axes(std::string_view op, const Shape& shape, std::span<const int> dims, bool keep);

/// Throws DTypeError unless floating.
Metas infer_reduction(std::string_view op, const ReduceAttrs& attrs, MetasIn in);
/// The shape with reduced dims of extent 1, as if keep were set.
Shape kept_shape(const ReduceAttrs& attrs, const Shape& in);
/// Elements reduced into one.
std::int64_t reduced_count(const ReduceAttrs& attrs, const Shape& in);

/// Throws ShapeError when outputs would be made of nothing: for means and extrema.
void check_reduces_something(std::string_view op, const ReduceAttrs& attrs, const Shape& in);

/// Samples over no, inner, outer, middle and all axes, of sizes 0, 1, odd and several blocks.
std::vector<Sample<ReduceAttrs>> reduction_samples(Fill fill, bool empty_allowed);

/// f(output index, input index) for each input element in row-major order.
template <class F>
void for_each_reduced(const ReduceAttrs& attrs, const Shape& in, F f) {
  const Shape kept = kept_shape(attrs, in);
  for (std::int64_t n = 0; n < in.count(); ++n) {
    std::int64_t rest = n, out = 0, stride = 1;
    for (int i = in.rank() - 1; i >= 0; --i) {
      const std::int64_t index = rest % in[i];
      rest /= in[i];
      if (kept[i] != 1) out += index * stride;
      stride *= kept[i];
    }
    f(out, n);
  }
}

}  // namespace lamina
