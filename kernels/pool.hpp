// What pooling op records share: the window and its shape rule.
#pragma once

#include <algorithm>
#include <array>

#include "lamina/kernels/op.hpp"

namespace lamina {

struct Window2d {
  std::array<std::int64_t, 2> kernel{2, 2};
  std::array<std::int64_t, 2> stride{2, 2};
  std::array<std::int64_t, 2> padding{0, 0};  ///< on both sides; at most half the kernel
};

/// (N,C,H,W) -> (N,C,OH,OW), O = (I + 2 padding - kernel) / stride + 1. Throws ShapeError for another rank or a kernel
/// larger than the padded image, DTypeError unless floating, ValueError for a window outside its range.
Shape pooled_shape(std::string_view op, const Window2d& window, const Meta& x);

/// The rows (dim 0) or columns (dim 1) that output `o` reads: [lo, hi) inside the image.
struct Range {
  std::int64_t lo, hi;
};
inline Range pool_range(const Window2d& w, std::size_t dim, std::int64_t o, std::int64_t extent) {
  const std::int64_t first = o * w.stride[dim] - w.padding[dim];
  return {std::max<std::int64_t>(first, 0), std::min(first + w.kernel[dim], extent)};
}

/// One dim of a pooling as kernels see it. Which elements a window has, and which windows an element is in, as [lo,
/// hi); the latter is empty where windows leave gaps.
struct WindowAxis {
  std::int64_t extent, outputs;
  std::int64_t kernel, stride, padding;

  Range elements_of(std::int64_t window) const {
    const std::int64_t first = window * stride - padding, end = first + kernel;
    return {first < 0 ? 0 : first, end < extent ? end : extent};
  }
  Range windows_of(std::int64_t element) const {
    const std::int64_t at = element + padding, end = at / stride + 1;
    return {at < kernel ? 0 : (at - kernel) / stride + 1, end < outputs ? end : outputs};
  }
};
WindowAxis window_axis(const Window2d& window, std::size_t dim, const Shape& image, const Shape& pooled);

/// Windows that overlap, leave gaps, are padded, do not divide the image; images of one element and none.
std::vector<std::pair<std::string, std::pair<Shape, Window2d>>> pool_cases();

}  // namespace lamina
