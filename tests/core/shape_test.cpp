#include "lamina/core/shape.hpp"

#include <gtest/gtest.h>

#include <set>

#include "lamina/core/error.hpp"
#include "lamina/core/rng.hpp"

namespace lamina {
namespace {

Layout layout_of(const Shape& shape, std::initializer_list<std::int64_t> strides, std::int64_t offset = 0) {
  Layout layout(shape);
  std::size_t i = 0;
  for (const std::int64_t s : strides) layout.strides[i++] = s;
  layout.offset = offset;
  return layout;
}

TEST(Shape, scalar) {
  const Shape s;
  EXPECT_EQ(s.rank(), 0);
  EXPECT_EQ(s.count(), 1);
  EXPECT_EQ(to_string(s), "()");
}

TEST(Shape, extents_and_count) {
  const Shape s{2, 3, 5};
  EXPECT_EQ(s.rank(), 3);
  EXPECT_EQ(s.count(), 30);
  EXPECT_EQ(s[1], 3);
  EXPECT_EQ(s.back(1), 5);
  EXPECT_EQ(to_string(s), "(2,3,5)");
  EXPECT_EQ(s, (Shape{2, 3, 5}));
  EXPECT_FALSE(s == (Shape{2, 3}));
  EXPECT_FALSE(s == (Shape{2, 3, 4}));
}

TEST(Shape, eight_dims_and_no_more) {
  EXPECT_EQ((Shape{1, 2, 1, 2, 1, 2, 1, 2}).count(), 16);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), ShapeError);
  const Shape full{1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_THROW(full.inserted(0, 1), ShapeError);
}

TEST(Shape, negative_extent) {
  EXPECT_THROW((Shape{2, -1}), ShapeError);
  EXPECT_THROW((Shape{2, 3}).with(0, -5), ShapeError);
  try {
    Shape{4, -7};
  } catch (const ShapeError& e) {
    EXPECT_STREQ(e.what(), "shape: dim 1 is -7; extents are >= 0");
  }
}

TEST(Shape, count_that_overflows) {
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ((Shape{big, big}).count(), std::int64_t{1} << 62);
  EXPECT_THROW((Shape{big, big, 2}), ShapeError);
  EXPECT_THROW((Shape{big, big, big}), ShapeError);
  EXPECT_THROW((Shape{INT64_MAX, 2}), ShapeError);
  EXPECT_EQ((Shape{INT64_MAX}).count(), INT64_MAX);
}

TEST(Shape, an_extent_of_zero_is_no_overflow) {
  const std::int64_t big = INT64_MAX;
  EXPECT_EQ((Shape{big, big, 0}).count(), 0);
  EXPECT_EQ((Shape{0, big, big}).count(), 0);
}

TEST(Shape, with_inserted_removed) {
  const Shape s{2, 3};
  EXPECT_EQ(s.with(1, 7), (Shape{2, 7}));
  EXPECT_EQ(s.inserted(0, 7), (Shape{7, 2, 3}));
  EXPECT_EQ(s.inserted(1, 7), (Shape{2, 7, 3}));
  EXPECT_EQ(s.inserted(2, 7), (Shape{2, 3, 7}));
  EXPECT_EQ(s.removed(0), (Shape{3}));
  EXPECT_EQ(s.removed(1), (Shape{2}));
}

TEST(Shape, broadcasting) {
  Shape out;
  EXPECT_TRUE(broadcast_shapes({2, 3}, {3}, out));
  EXPECT_EQ(out, (Shape{2, 3}));
  EXPECT_TRUE(broadcast_shapes({4, 1}, {1, 5}, out));
  EXPECT_EQ(out, (Shape{4, 5}));
  EXPECT_TRUE(broadcast_shapes({}, {2, 2}, out));
  EXPECT_EQ(out, (Shape{2, 2}));
  EXPECT_TRUE(broadcast_shapes({0}, {1}, out));
  EXPECT_EQ(out, (Shape{0}));
  EXPECT_TRUE(broadcast_shapes({3, 1}, {0}, out));
  EXPECT_EQ(out, (Shape{3, 0}));
  EXPECT_FALSE(broadcast_shapes({2}, {3}, out));
  EXPECT_FALSE(broadcast_shapes({0}, {2}, out));
  EXPECT_FALSE(broadcast_shapes({2, 3}, {2}, out));
}

TEST(Shape, dims_counted_from_the_end) {
  EXPECT_EQ(normalize_dim("op", 0, 3), 0);
  EXPECT_EQ(normalize_dim("op", 2, 3), 2);
  EXPECT_EQ(normalize_dim("op", -1, 3), 2);
  EXPECT_EQ(normalize_dim("op", -3, 3), 0);
  EXPECT_THROW(normalize_dim("op", 3, 3), ShapeError);
  EXPECT_THROW(normalize_dim("op", -4, 3), ShapeError);
  EXPECT_THROW(normalize_dim("op", 0, 0), ShapeError);
}

TEST(Layout, dense_row_major) {
  const Layout l(Shape{2, 3, 4});
  EXPECT_EQ(l.strides[0], 12);
  EXPECT_EQ(l.strides[1], 4);
  EXPECT_EQ(l.strides[2], 1);
  EXPECT_TRUE(l.is_contiguous());
  EXPECT_FALSE(l.self_overlaps());
}

TEST(Layout, contiguous) {
  EXPECT_TRUE(Layout(Shape{}).is_contiguous());
  EXPECT_FALSE(layout_of({3, 4}, {1, 3}).is_contiguous());
  EXPECT_TRUE(layout_of({3, 4}, {4, 1}, 100).is_contiguous());  // wherever it starts
  EXPECT_TRUE(layout_of({1, 4}, {999, 1}).is_contiguous());     // extents of 1 may have any stride
  EXPECT_TRUE(layout_of({3, 1}, {1, 0}).is_contiguous());
  EXPECT_FALSE(layout_of({3, 4}, {0, 1}).is_contiguous());
  EXPECT_TRUE(layout_of({0, 4}, {7, 9}).is_contiguous());  // nothing is where it should be
  EXPECT_TRUE(layout_of({4, 0}, {7, 9}).is_contiguous());
}

TEST(Layout, overlap_of_simple_layouts) {
  EXPECT_TRUE(layout_of({3}, {0}).self_overlaps());
  EXPECT_FALSE(layout_of({1}, {0}).self_overlaps());
  EXPECT_FALSE(layout_of({0}, {0}).self_overlaps());
  EXPECT_TRUE(layout_of({3, 3}, {1, 1}).self_overlaps());  // sliding windows
  EXPECT_FALSE(layout_of({3, 3}, {1, 3}).self_overlaps());
}

// Every layout that slicing with steps, permuting and repeating can make is judged exactly; no layout at all that
// overlaps is called free of overlap.
TEST(Layout, overlap_against_enumeration) {
  const Rng rng(1);
  int overlapping = 0;
  for (std::uint64_t trial = 0; trial < 4000; ++trial) {
    auto draw = [&](std::uint64_t n, std::uint64_t what) {
      return static_cast<std::int64_t>(rng.below(n, trial, what));
    };
    const int rank = static_cast<int>(1 + draw(4, 0));
    const bool derived = draw(2, 1) == 0;
    std::vector<std::int64_t> dims;
    for (int d = 0; d < rank; ++d) dims.push_back(1 + draw(4, 10 + static_cast<std::uint64_t>(d)));
    Layout layout{Shape(std::span<const std::int64_t>(dims))};
    std::int64_t stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      if (derived) {
        layout.strides[i] = draw(5, 20 + i) == 0 ? 0 : stride * (1 + draw(3, 30 + i));
        stride *= 4 * dims[i];
      } else {
        layout.strides[i] = draw(9, 40 + i);
      }
    }
    if (derived && rank > 1 && draw(2, 50) == 0) {
      std::vector<std::int64_t> swapped = dims;
      std::swap(swapped[0], swapped[static_cast<std::size_t>(rank - 1)]);
      std::swap(layout.strides[0], layout.strides[static_cast<std::size_t>(rank - 1)]);
      layout.shape = Shape(std::span<const std::int64_t>(swapped));
    }
    std::set<std::int64_t> reached;
    bool overlaps = false;
    for (std::int64_t n = 0; n < layout.shape.count(); ++n) {
      std::int64_t rest = n, at = 0;
      for (int d = rank - 1; d >= 0; --d) {
        at += rest % layout.shape[d] * layout.strides[static_cast<std::size_t>(d)];
        rest /= layout.shape[d];
      }
      overlaps = overlaps || !reached.insert(at).second;
    }
    overlapping += overlaps ? 1 : 0;
    if (derived) {
      EXPECT_EQ(layout.self_overlaps(), overlaps) << "trial " << trial;
    } else if (overlaps) {
      EXPECT_TRUE(layout.self_overlaps()) << "trial " << trial;
    }
  }
  EXPECT_GT(overlapping, 500);
}

}  // namespace
}  // namespace lamina
