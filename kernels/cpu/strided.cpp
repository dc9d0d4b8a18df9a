#include "lamina/kernels/cpu/strided.hpp"

namespace lamina {

StridedRows strided_rows(const Shape& shape, Operands operands) {
  StridedRows rows;
  const std::size_t n = operands.size();
  // Built from the innermost dim outwards; `extent` and `step` are those of the dim being merged.
  std::int64_t extent = 1;
  std::array<std::int64_t, StridedRows::kMaxOperands> step{};
  bool first = true;
  std::array<std::int64_t, kMaxRank> dims{};
  std::array<std::array<std::int64_t, kMaxRank>, StridedRows::kMaxOperands> outer{};
  int found = 0;
  auto flush = [&] {
    if (first) return;
    dims[static_cast<std::size_t>(found)] = extent;
    for (std::size_t k = 0; k < n; ++k) outer[k][static_cast<std::size_t>(found)] = step[k];
    ++found;
  };
  for (int back = 1; back <= shape.rank(); ++back) {
    const std::int64_t e = shape.back(back);
    if (e == 1) continue;
    std::array<std::int64_t, StridedRows::kMaxOperands> s{};
    for (std::size_t k = 0; k < n; ++k) {
      const Layout& l = *operands[k].layout;
      const int dim = l.shape.rank() - back;
      s[k] = dim < 0 || l.shape[dim] == 1 ? 0 : l.strides[static_cast<std::size_t>(dim)];
    }
    bool merges = !first;
    for (std::size_t k = 0; k < n && merges; ++k) merges = s[k] == step[k] * extent;
    if (merges) {
      extent *= e;
      continue;
    }
    flush();
    first = false;
    extent = e;
    step = s;
  }
  flush();
  if (found == 0) return rows;  // one element
  rows.inner = dims[0];
  for (std::size_t k = 0; k < n; ++k) rows.step[k] = outer[k][0];
  rows.rank = found - 1;
  for (int i = 1; i < found; ++i) {
    const auto to = static_cast<std::size_t>(found - 1 - i);
    rows.dims[to] = dims[static_cast<std::size_t>(i)];
    rows.rows *= rows.dims[to];
    for (std::size_t k = 0; k < n; ++k) rows.outer[k][to] = outer[k][static_cast<std::size_t>(i)];
  }
  return rows;
}

}  // namespace lamina
