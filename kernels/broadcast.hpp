// The naive broadcasting loop of the references of elementwise ops.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

/// Index into an operand of `shape` for the output element with row-major index `n` of `out_shape`.
inline std::int64_t broadcast_index(std::int64_t n, const Shape& out_shape, const Shape& shape) {
  std::int64_t index = 0;
  std::int64_t stride = 1;
  for (int back = 1; back <= shape.rank(); ++back) {
    const std::int64_t extent = out_shape.back(back);
    if (shape.back(back) != 1) index += n % extent * stride;
    n /= extent;
    stride *= shape.back(back);
  }
  return index;
}

template <class Real, class F>
void reference_binary(In<Real> in, Out<Real> out, F f) {
  for (std::int64_t n = 0; n < out[0].shape.count(); ++n) {
    out[0].real[n] = f(in[0].real[broadcast_index(n, out[0].shape, in[0].shape)],
                       in[1].real[broadcast_index(n, out[0].shape, in[1].shape)]);
  }
}

template <class Real, class F>
void reference_unary(In<Real> in, Out<Real> out, F f) {
  for (std::int64_t n = 0; n < out[0].shape.count(); ++n) out[0].real[n] = f(in[0].real[n]);
}

}  // namespace lamina
