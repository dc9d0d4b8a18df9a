// Products: a batch of matrix products as the engine wants it, from the layouts of the operands of an op.
#pragma once

#include <array>

#include "lamina/kernels/variant.hpp"

namespace lamina {

/// `batch` products (m x k) (k x n) into a dense row-major result. Strides are in elements.
struct Products {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t a_row = 0, a_k = 0, b_column = 0, b_k = 0;
  std::int64_t batch = 1;
  int rank = 0;  ///< of the batch
  std::array<std::int64_t, kMaxRank> dims{}, a_strides{}, b_strides{};

  /// Why simd/products.hpp cannot go row by row; yes for one row or column times a matrix with a unit stride.
  Support by_rows() const noexcept {
    if (m != 1 && n != 1) return Support::no("one row or one column only");
    const std::int64_t line_stride = m == 1 ? b_column : a_row, k_stride = m == 1 ? b_k : a_k;
    return line_stride == 1 || k_stride == 1 || k <= 1 ? Support::yes() : Support::no("the matrix has no unit stride");
  }
  /// Element offsets of one product's operands.
  std::int64_t a_start(std::int64_t index) const noexcept { return start(a_strides, index); }
  std::int64_t b_start(std::int64_t index) const noexcept { return start(b_strides, index); }

 private:
  std::int64_t start(const std::array<std::int64_t, kMaxRank>& strides, std::int64_t index) const noexcept {
    std::int64_t at = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      at += index % dims[d] * strides[d];
      index /= dims[d];
    }
    return at;
  }
};

/// The products of a matmul into `out`. Where b is the same for neighbouring products and the rows of a go on evenly,
/// they become one product of more rows. An operand `a` of rank 1 is one row; b has a rank of 2 or more.
Products products_of(const Layout& a, bool transpose_a, const Layout& b, bool transpose_b, const Shape& out);

}  // namespace lamina
