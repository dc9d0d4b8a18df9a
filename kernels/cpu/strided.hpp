// Loops over strided operands: dims of equal step are merged, so that a kernel sees few long rows.
#pragma once

#include <array>

#include "lamina/kernels/variant.hpp"

namespace lamina {

/// The rows of a dense output and, in step, of up to three strided inputs. `inner` is the merged last dim.
struct StridedRows {
  static constexpr int kMaxOperands = 3;
  int rank = 0;            ///< outer dims
  std::int64_t rows = 1;   ///< product of the outer dims
  std::int64_t inner = 1;  ///< elements of a row
  std::array<std::int64_t, kMaxRank> dims{};
  std::array<std::array<std::int64_t, kMaxRank>, kMaxOperands> outer{};  ///< strides of the outer dims, an operand
  std::array<std::int64_t, kMaxOperands> step{};                         ///< stride along a row, an operand

  /// Element offset of the row's start in operand k.
  std::int64_t start(int k, std::int64_t row) const noexcept {
    std::int64_t at = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      at += row % dims[d] * outer[static_cast<std::size_t>(k)][d];
      row /= dims[d];
    }
    return at;
  }
};

/// Walks rows in order without a division each.
class RowCursor {
 public:
  RowCursor(const StridedRows& rows, std::int64_t row) noexcept : rows_(rows) {
    for (int k = 0; k < StridedRows::kMaxOperands; ++k) starts[static_cast<std::size_t>(k)] = rows.start(k, row);
    for (int i = rows.rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      index_[d] = row % rows.dims[d];
      row /= rows.dims[d];
    }
  }
  void next() noexcept {
    for (int i = rows_.rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      const bool inside = ++index_[d] < rows_.dims[d];
      for (std::size_t k = 0; k < starts.size(); ++k) {
        starts[k] += inside ? rows_.outer[k][d] : rows_.outer[k][d] * (1 - rows_.dims[d]);
      }
      if (inside) return;
      index_[d] = 0;
    }
  }

  std::array<std::int64_t, StridedRows::kMaxOperands> starts{};  ///< offset of the row's start, an operand

 private:
  const StridedRows& rows_;
  std::array<std::int64_t, kMaxRank> index_{};
};

/// `shape` is the output's; each operand broadcasts to it as numpy does (an extent of 1 or a missing dim repeats).
StridedRows strided_rows(const Shape& shape, Operands operands);

/// Elements a block of an elementwise kernel works on: long enough to hide the hand-over, short enough to balance.
inline constexpr std::int64_t kElementwiseBlock = 16384;

}  // namespace lamina
