#include "lamina/core/shape.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "lamina/core/error.hpp"

namespace lamina {

Shape::Shape(std::span<const std::int64_t> dims) {
  if (dims.size() > kMaxRank) fail<ShapeError>("shape", "{} dims; at most {} are supported", dims.size(), kMaxRank);
  rank_ = static_cast<int>(dims.size());
  std::int64_t count = 1;
  bool overflow = false;
  bool empty = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) fail<ShapeError>("shape", "dim {} is {}; extents are >= 0", i, dims[i]);
    dims_[i] = dims[i];
    empty = empty || dims[i] == 0;
    overflow = overflow || __builtin_mul_overflow(count, dims[i], &count);
  }
  if (overflow && !empty) fail<ShapeError>("shape", "element count of {} overflows 63 bits", to_string(*this));
}

Shape Shape::with(int dim, std::int64_t extent) const {
  auto dims = dims_;
  dims[static_cast<std::size_t>(dim)] = extent;
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_)));
}

Shape Shape::inserted(int dim, std::int64_t extent) const {
  std::array<std::int64_t, kMaxRank + 1> dims{};
  for (int i = 0, j = 0; i <= rank_; ++i) {
    dims[static_cast<std::size_t>(i)] = i == dim ? extent : (*this)[j++];
  }
  return Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank_) + 1));
}

Shape Shape::removed(int dim) const {
  Shape out;
  for (int i = 0; i < rank_; ++i) {
    if (i != dim) out.dims_[static_cast<std::size_t>(out.rank_++)] = (*this)[i];
  }
  return out;
}

std::string to_string(const Shape& shape) { return fmt::format("({})", fmt::join(shape.dims(), ",")); }

bool Layout::is_contiguous() const noexcept {
  std::int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    if (shape[i] == 0) return true;
    if (shape[i] != 1 && strides[static_cast<std::size_t>(i)] != expected) {
      return shape.count() == 0;
    }
    expected *= shape[i];
  }
  return true;
}

bool Layout::self_overlaps() const noexcept {
  auto stride_of = [&](int dim) { return strides[static_cast<std::size_t>(dim)]; };
  // Taken by rising stride, each dim must step over everything the smaller ones can reach.
  std::array<int, kMaxRank> order{};
  int n = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 0) return false;
    if (shape[i] == 1) continue;
    int at = n++;
    for (; at > 0 && stride_of(order[static_cast<std::size_t>(at - 1)]) > stride_of(i); --at) {
      order[static_cast<std::size_t>(at)] = order[static_cast<std::size_t>(at - 1)];
    }
    order[static_cast<std::size_t>(at)] = i;
  }
  std::int64_t reach = 0;
  for (int i = 0; i < n; ++i) {
    const int dim = order[static_cast<std::size_t>(i)];
    if (stride_of(dim) <= reach) return true;
    reach += stride_of(dim) * (shape[dim] - 1);
  }
  return false;
}

bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out) {
  const int rank = std::max(a.rank(), b.rank());
  std::array<std::int64_t, kMaxRank> dims{};
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t x = i <= a.rank() ? a.back(i) : 1;
    const std::int64_t y = i <= b.rank() ? b.back(i) : 1;
    if (x != y && x != 1 && y != 1) return false;
    dims[static_cast<std::size_t>(rank - i)] = x == 1 ? y : x;
  }
  out = Shape(std::span<const std::int64_t>(dims.data(), static_cast<std::size_t>(rank)));
  return true;
}

int normalize_dim(std::string_view where, int dim, int rank) {
  if (dim < -rank || dim >= rank) fail<ShapeError>(where, "dim {} is outside [{}, {})", dim, -rank, rank);
  return dim < 0 ? dim + rank : dim;
}

}  // namespace lamina
