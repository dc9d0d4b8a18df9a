#include "lamina/kernels/cpu/products.hpp"

namespace lamina {

namespace {

std::int64_t stride_from_end(const Layout& layout, int back) {
  return layout.strides[static_cast<std::size_t>(layout.shape.rank() - back)];
}

// The stride of the dim that is `back` from the end; 0 where the operand repeats.
std::int64_t batch_stride(const Layout& layout, int back) {
  return back > layout.shape.rank() || layout.shape.back(back) == 1 ? 0 : stride_from_end(layout, back);
}

}  // namespace

Products products_of(const Layout& a, bool transpose_a, const Layout& b, bool transpose_b, const Shape& out) {
  Products p;
  p.n = out.back(1);
  p.k = b.shape.back(transpose_b ? 1 : 2);
  p.b_column = stride_from_end(b, transpose_b ? 2 : 1);
  p.b_k = stride_from_end(b, transpose_b ? 1 : 2);
  p.a_k = stride_from_end(a, transpose_a ? 2 : 1);
  if (a.shape.rank() >= 2) {
    p.m = out.back(2);
    p.a_row = stride_from_end(a, transpose_a ? 1 : 2);
  }
  bool folding = true;  // from the last batch dim outwards, until one does not fold
  for (int back = 3; back <= out.rank(); ++back) {
    const std::int64_t extent = out.back(back);
    const std::int64_t in_a = batch_stride(a, back), in_b = batch_stride(b, back);
    if (extent == 1) continue;
    if (folding && in_b == 0 && (p.m == 1 || in_a == p.a_row * p.m)) {
      if (p.m == 1) p.a_row = in_a;
      p.m *= extent;
      continue;
    }
    folding = false;
    for (std::size_t i = static_cast<std::size_t>(p.rank); i > 0; --i) {
      p.dims[i] = p.dims[i - 1];
      p.a_strides[i] = p.a_strides[i - 1];
      p.b_strides[i] = p.b_strides[i - 1];
    }
    p.dims[0] = extent;
    p.a_strides[0] = in_a;
    p.b_strides[0] = in_b;
    ++p.rank;
    p.batch *= extent;
  }
  return p;
}

}  // namespace lamina
