#include "lamina/kernels/pool.hpp"

namespace lamina {

Shape pooled_shape(std::string_view op, const Window2d& w, const Meta& x) {
  if (x.shape.rank() != 4) fail<ShapeError>(op, "operand 0: shape {}; (N,C,H,W) wanted", to_string(x.shape));
  if (!is_floating(x.dtype)) fail<DTypeError>(op, "operand 0: {} is not a floating dtype", name_of(x.dtype));
  Shape shape = x.shape;
  for (std::size_t d = 0; d < 2; ++d) {
    if (w.kernel[d] < 1 || w.stride[d] < 1 || w.padding[d] < 0 || 2 * w.padding[d] > w.kernel[d]) {
      fail<ValueError>(op, "kernel {}, stride {}, padding {}; at least 1, 1 and 0, padding at most half the kernel",
                       w.kernel[d], w.stride[d], w.padding[d]);
    }
    const std::int64_t extent = x.shape[2 + static_cast<int>(d)];
    const std::int64_t room = extent + 2 * w.padding[d] - w.kernel[d];
    if (room < 0)
      fail<ShapeError>(op, "kernel {} is larger than {} with padding {}", w.kernel[d], extent, w.padding[d]);
    shape = shape.with(2 + static_cast<int>(d), room / w.stride[d] + 1);
  }
  return shape;
}

WindowAxis window_axis(const Window2d& window, std::size_t dim, const Shape& image, const Shape& pooled) {
  const int d = 2 + static_cast<int>(dim);
  return {image[d], pooled[d], window.kernel[dim], window.stride[dim], window.padding[dim]};
}

std::vector<std::pair<std::string, std::pair<Shape, Window2d>>> pool_cases() {
  return {{"halves", {{2, 3, 6, 8}, {}}},
          {"overlap", {{2, 2, 7, 9}, {{3, 3}, {2, 2}, {1, 1}}}},
          {"gaps", {{1, 2, 8, 7}, {{1, 2}, {3, 3}, {0, 0}}}},
          {"remainder", {{1, 1, 5, 6}, {{2, 3}, {2, 2}, {0, 1}}}},
          {"one", {{1, 1, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}}},
          {"empty", {{0, 3, 4, 4}, {}}}};
}

}  // namespace lamina
