#include <gtest/gtest.h>

#include <numeric>

#include "lamina/core/rng.hpp"
#include "lamina/core/tensor.hpp"
#include "tests/support/host_device.hpp"

namespace lamina {
namespace {

using Values = std::vector<std::int64_t>;

class ViewTest : public ::testing::Test {
 protected:
  Device device = test::host_device();
  Tensor counting(const Shape& shape) const {
    Values values(static_cast<std::size_t>(shape.count()));
    std::iota(values.begin(), values.end(), 0);
    return Tensor::from(device, shape, values);
  }
};

TEST_F(ViewTest, slice) {
  const Tensor t = counting({3, 4});
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(0, 1, 3)), (Values{4, 5, 6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(1, 1, 4, 2)), (Values{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(-1, 3, 4)), (Values{3, 7, 11}));
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(0, 0, 3, 2).slice(1, 0, 4, 3)), (Values{0, 3, 8, 11}));
  EXPECT_EQ(t.slice(0, 2, 2).shape(), (Shape{0, 4}));
  EXPECT_EQ(t.slice(0, 3, 3).shape(), (Shape{0, 4}));  // past the last, and empty
  EXPECT_EQ(t.slice(0, 0, 3, 100).shape(), (Shape{1, 4}));
  EXPECT_EQ(t.slice(0, 0, 3, INT64_MAX).shape(), (Shape{1, 4}));
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(0, 0, 3, INT64_MAX)), (Values{0, 1, 2, 3}));
}

TEST_F(ViewTest, slice_refuses) {
  const Tensor t = counting({3, 4});
  EXPECT_THROW(t.slice(0, -1, 2), ShapeError);
  EXPECT_THROW(t.slice(0, 2, 1), ShapeError);
  EXPECT_THROW(t.slice(0, 0, 4), ShapeError);
  EXPECT_THROW(t.slice(0, 0, 2, 0), ShapeError);
  EXPECT_THROW(t.slice(2, 0, 1), ShapeError);
  EXPECT_THROW(Tensor::from(device, {}, {1.0f}).slice(0, 0, 1), ShapeError);
}

TEST_F(ViewTest, permute_and_transpose) {
  const Tensor t = counting({2, 3, 4});
  const Tensor p = t.permute({2, 0, 1});
  EXPECT_EQ(p.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(to_vector<std::int64_t>(p.slice(0, 1, 2)), (Values{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(to_vector<std::int64_t>(counting({2, 3}).transpose(0, 1)), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(t.transpose(-1, 0).shape(), (Shape{4, 3, 2}));
  EXPECT_THROW(t.permute({0, 1}), ShapeError);
  EXPECT_THROW(t.permute({0, 1, 1}), ShapeError);
  EXPECT_THROW(t.permute({0, 1, 3}), ShapeError);
  EXPECT_THROW(t.permute({0, 1, -1}), ShapeError);
  EXPECT_THROW(t.transpose(0, 3), ShapeError);
}

TEST_F(ViewTest, expand) {
  const Tensor t = counting({3, 1});
  const Tensor e = t.expand({2, 3, 2});
  EXPECT_EQ(to_vector<std::int64_t>(e), (Values{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_TRUE(e.layout().self_overlaps());
  EXPECT_EQ(t.expand({3, 0}).count(), 0);
  EXPECT_TRUE(t.expand({3, 1}).is_contiguous());
  EXPECT_THROW(t.expand({2, 1}), ShapeError);
  EXPECT_THROW(t.expand({3}), ShapeError);
  EXPECT_THROW(counting({2, 3}).expand({4, 3}), ShapeError);
}

TEST_F(ViewTest, view_of_a_dense_tensor) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(t.view({6, 4}).shape(), (Shape{6, 4}));
  EXPECT_EQ(t.view({-1}).shape(), (Shape{24}));
  EXPECT_EQ(t.view({2, -1, 2}).shape(), (Shape{2, 6, 2}));
  EXPECT_EQ(t.view({1, 24, 1}).shape(), (Shape{1, 24, 1}));
  EXPECT_EQ(to_vector<std::int64_t>(t.slice(0, 1, 2).view({4, 3})).front(), 12);
  EXPECT_EQ(counting({0, 3}).view({3, 0}).shape(), (Shape{3, 0}));
  EXPECT_EQ(Tensor::from(device, {}, {1.0f}).view({1, 1}).shape(), (Shape{1, 1}));
  EXPECT_EQ(counting({1}).view(Shape{}).shape(), Shape{});
}

TEST_F(ViewTest, view_refuses) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_THROW(t.view({5, 5}), ShapeError);
  EXPECT_THROW(t.view({-1, 7}), ShapeError);
  EXPECT_THROW(t.view({-1, 0}), ShapeError);
  EXPECT_THROW(t.view({-1, -1}), ShapeError);
  EXPECT_THROW(t.view({-2, -12}), ShapeError);
  EXPECT_THROW(counting({0}).view({-1, 0}), ShapeError);             // any number would do
  EXPECT_THROW(t.view({-1, std::int64_t{1} << 62, 4}), ShapeError);  // the product overflows
}

TEST_F(ViewTest, view_of_a_strided_tensor) {
  const Tensor t = counting({4, 4, 6});
  const Tensor rows = t.slice(0, 0, 4, 2);  // two dense blocks of 24
  EXPECT_EQ(to_vector<std::int64_t>(rows.view({2, 24})), to_vector<std::int64_t>(rows));
  EXPECT_EQ(to_vector<std::int64_t>(rows.view({2, 2, 12})), to_vector<std::int64_t>(rows));
  EXPECT_EQ(to_vector<std::int64_t>(rows.view({2, 3, 8})), to_vector<std::int64_t>(rows));  // across the two dims
  EXPECT_EQ(to_vector<std::int64_t>(rows.view({1, 2, 1, 24, 1})), to_vector<std::int64_t>(rows));
  EXPECT_THROW(rows.view({48}), LayoutError);
  EXPECT_THROW(rows.view({4, 12, 1}).view({48}), LayoutError);
  const Tensor columns = t.slice(2, 0, 6, 2);
  EXPECT_EQ(to_vector<std::int64_t>(columns.view({16, 3})), to_vector<std::int64_t>(columns));
  EXPECT_EQ(to_vector<std::int64_t>(columns.view({48})), to_vector<std::int64_t>(columns));  // one step everywhere
  EXPECT_THROW(t.transpose(1, 2).view({96}), LayoutError);
  EXPECT_EQ(t.transpose(1, 2).view({2, 2, 6, 4}).shape(), (Shape{2, 2, 6, 4}));
}

TEST_F(ViewTest, view_passes_over_extents_of_one_with_odd_strides) {
  const Tensor t = counting({4, 3, 4}).slice(0, 0, 4, 2);            // (2,3,4)
  const Tensor ones = t.expand({1, 2, 3, 4}).permute({1, 2, 0, 3});  // (2,3,1,4), the 1 with stride 0
  EXPECT_EQ(to_vector<std::int64_t>(ones.view({2, 12})), to_vector<std::int64_t>(t));
}

TEST_F(ViewTest, view_of_a_repeated_tensor) {
  const Tensor t = counting({3}).expand({2, 4, 3});
  EXPECT_EQ(to_vector<std::int64_t>(t.view({8, 3})), to_vector<std::int64_t>(t));
  EXPECT_THROW(t.view({24}), LayoutError);
}

// Random chains of views: elements are those of plain index arithmetic; a view either keeps the elements in order or
// throws, and throws only when no strides could do it.
TEST_F(ViewTest, random_chains) {
  const Rng rng(5);
  int refused = 0, viewed = 0;
  for (std::uint64_t trial = 0; trial < 3000; ++trial) {
    std::uint64_t draws = 0;
    auto draw = [&](std::int64_t n) {
      return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(n), trial, draws++));
    };
    Tensor t = counting({1 + draw(4), 1 + draw(4), 1 + draw(6)});
    for (int step = 0; step < 4; ++step) {
      const int rank = t.shape().rank();
      switch (draw(3)) {
        case 0: {
          const int dim = static_cast<int>(draw(rank));
          const std::int64_t lo = draw(t.shape()[dim] + 1);
          const std::int64_t hi = lo + draw(t.shape()[dim] - lo + 1);
          const std::int64_t by = 1 + draw(3);
          const Values before = to_vector<std::int64_t>(t);
          const Shape shape = t.shape();
          t = t.slice(dim, lo, hi, by);
          Values expected;
          std::int64_t inner = 1;
          for (int d = dim + 1; d < rank; ++d) inner *= shape[d];
          for (std::size_t n = 0; n < before.size(); ++n) {
            const std::int64_t index = static_cast<std::int64_t>(n) / inner % shape[dim];
            if (index >= lo && index < hi && (index - lo) % by == 0) expected.push_back(before[n]);
          }
          ASSERT_EQ(to_vector<std::int64_t>(t), expected) << "trial " << trial;
          break;
        }
        case 1: t = t.transpose(static_cast<int>(draw(rank)), static_cast<int>(draw(rank))); break;
        default: {
          // Any target of the same count.
          std::vector<std::int64_t> dims;
          for (std::int64_t rest = t.count(); rest > 1 && dims.size() < 6;) {
            std::int64_t factor = dims.size() == 5 ? rest : 1 + draw(rest);
            while (rest % factor != 0) --factor;
            dims.push_back(factor);
            rest /= factor;
          }
          if (dims.empty()) dims = {t.count()};
          const Shape target{std::span<const std::int64_t>(dims)};
          const Values before = to_vector<std::int64_t>(t);
          // Expressible when some strides reach exactly these elements in order.
          bool expressible = true;
          if (target.count() > 0) {
            std::vector<std::int64_t> strides(dims.size(), 0);
            std::int64_t block = 1;
            for (std::size_t d = dims.size(); d-- > 0;) {
              if (dims[d] > 1) strides[d] = before[static_cast<std::size_t>(block)] - before[0];
              block *= dims[d];
            }
            for (std::int64_t n = 0; n < target.count() && expressible; ++n) {
              std::int64_t rest = n, at = before[0];
              for (std::size_t d = dims.size(); d-- > 0;) {
                at += rest % dims[d] * strides[d];
                rest /= dims[d];
              }
              expressible = at == before[static_cast<std::size_t>(n)];
            }
            for (const std::int64_t s : strides) expressible = expressible && s >= 0;
          }
          try {
            t = t.view(target);
            ASSERT_TRUE(expressible) << "trial " << trial;
            ASSERT_EQ(to_vector<std::int64_t>(t), before) << "trial " << trial;
            ++viewed;
          } catch (const LayoutError&) {
            ASSERT_FALSE(expressible) << "trial " << trial << ": " << to_string(t.shape()) << " as "
                                      << to_string(target);
            ++refused;
          }
        }
      }
      if (t.count() == 0) break;
    }
  }
  EXPECT_GT(viewed, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace lamina
