// Shape and Layout: what a tensor's elements look like in memory.
// Values; all functions are pure and thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace lamina {

inline constexpr int kMaxRank = 8;

/// Up to 8 extents, each >= 0. The element count is checked for overflow when the shape is made.
class Shape {
 public:
  constexpr Shape() noexcept = default;  ///< rank 0: a scalar
  /// Throws ShapeError for more than 8 dims, a negative extent, or a count that overflows int64.
  Shape(std::initializer_list<std::int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int dim) const noexcept { return dims_[static_cast<std::size_t>(dim)]; }
  /// Extent counted from the end: back(1) is the last.
  std::int64_t back(int from_end) const noexcept { return dims_[static_cast<std::size_t>(rank_ - from_end)]; }
  std::int64_t count() const noexcept {
    std::uint64_t n = 1;  // wraps around only where an extent of 0 follows
    for (int i = 0; i < rank_; ++i) n *= static_cast<std::uint64_t>((*this)[i]);
    return static_cast<std::int64_t>(n);
  }
  std::span<const std::int64_t> dims() const noexcept { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  auto begin() const noexcept { return dims_.begin(); }
  auto end() const noexcept { return dims_.begin() + rank_; }

  /// The shape with one extent replaced, inserted or removed. Throws ShapeError as the constructor does.
  Shape with(int dim, std::int64_t extent) const;
  Shape inserted(int dim, std::int64_t extent) const;
  Shape removed(int dim) const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "(8,64)"; "()" for a scalar.
std::string to_string(const Shape& shape);

using Strides = std::array<std::int64_t, kMaxRank>;

/// Shape, strides and offset in elements. Strides are >= 0; 0 repeats an element (broadcast, read-only).
struct Layout {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;

  Layout() = default;
  /// The dense row-major layout of `shape`.
  explicit Layout(const Shape& s) noexcept : shape(s) {
    std::uint64_t stride = 1;  // unsigned: an empty shape may have extents whose product overflows
    for (int i = s.rank() - 1; i >= 0; --i) {
      strides[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(stride & INT64_MAX);
      stride *= static_cast<std::uint64_t>(s[i] > 1 ? s[i] : 1);
    }
  }

  /// Dense row-major from the offset on; extents of 1 may have any stride.
  bool is_contiguous() const noexcept;
  /// True when two different indices can reach the same element.
  bool self_overlaps() const noexcept;
};

/// Shape after numpy-style broadcasting. Returns false when the shapes do not fit.
bool broadcast_shapes(const Shape& a, const Shape& b, Shape& out);

/// `dim` counted from the front; negative counts from the end. Throws ShapeError when outside [-rank, rank).
int normalize_dim(std::string_view where, int dim, int rank);

}  // namespace lamina
