// Kernels of 1 x 1 with stride 1: products of matrices.
// Included by vector.hpp (no include guard).

/// Images (n, channels, pixels) as a matrix of channels x all pixels, whose lines are pixels.
struct PixelColumns {
  const float* data;
  Size channels, pixels;
  void pack(float* to, Size first, Size lines, Size k0, Size steps) const {
    const Size image = first / pixels, pixel = first % pixels;
    const float* from = data + (image * channels + k0) * pixels + pixel;
    if (pixel + lines <= pixels) return pack_panel<kGemmNr>(to, from, 1, pixels, lines, steps);
    for (Size k = 0; k < steps; ++k) {
      for (Size j = 0; j < kGemmNr; ++j) {
        const Size at = first + j, n = at / pixels;
        to[k * kGemmNr + j] = j < lines ? data[(n * channels + k0 + k) * pixels + at % pixels] : 0.0f;
      }
    }
  }
  GemmOperand direct() const { return {}; }
};

/// The same matrix whose lines are channels.
template <int kStride>
struct PixelRows {
  const float* data;
  Size channels, pixels;
  void pack(float* to, Size first, Size lines, Size k0, Size steps) const {
    for (Size k = k0; k < k0 + steps;) {
      const Size image = k / pixels, pixel = k % pixels, count = least(pixels - pixel, k0 + steps - k);
      pack_panel<kStride>(to + (k - k0) * kStride, data + (image * channels + first) * pixels + pixel, pixels, 1, lines,
                          count);
      k += count;
    }
  }
  GemmOperand direct() const { return {}; }
};

/// Stores tiles of (outputs x all pixels), plus bias, as images.
void put_pixel_tile(const float* tile, Size row, Size rows, Size column, Size columns, const float* bias, Size outputs,
                    Size pixels, float* out) {
  const Size image = column / pixels;
  if (column % pixels + columns <= pixels) {
    float* y = out + image * (outputs - 1) * pixels;  // columns count on through the images
    store_tile(tile, y, pixels, row, rows, column, columns,
               [&](vf v, Size i, Size) { return bias != nullptr ? v + broadcast(bias[i]) : v; });
    return;
  }
  for (Size i = 0; i < rows; ++i) {
    const float shift = bias != nullptr ? bias[row + i] : 0.0f;
    for (Size j = 0; j < columns; ++j) {
      const Size at = column + j;
      out[(at / pixels * outputs + row + i) * pixels + at % pixels] = tile[i * kGemmNr + j] + shift;
    }
  }
}

void conv2d_pointwise(const Launch<Conv2d::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.in[0], launch.out[0]);
  const float* bias = launch.in.size() > 2 ? launch.in[2].as<const float>() : nullptr;
  float* y = launch.out[0].as<float>();
  gemm(
      s.outputs, s.images * s.pixels, s.channels, GemmA<float>{launch.in[1].as<const float>(), s.channels, 1},
      PixelColumns{launch.in[0].as<const float>(), s.channels, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        put_pixel_tile(tile, row, rows, column, columns, bias, s.outputs, s.pixels, y);
      },
      launch.executor, launch.pool);
}
void conv2d_input_grad_pointwise(const Launch<Conv2dInputGrad::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.out[0], launch.in[0]);
  float* dx = launch.out[0].as<float>();
  gemm(
      s.channels, s.images * s.pixels, s.outputs, GemmA<float>{launch.in[1].as<const float>(), 1, s.channels},
      PixelColumns{launch.in[0].as<const float>(), s.outputs, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        put_pixel_tile(tile, row, rows, column, columns, nullptr, s.channels, s.pixels, dx);
      },
      launch.executor, launch.pool);
}
void conv2d_weight_grad_pointwise(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.in[1], launch.in[0]);
  float* dw = launch.out[0].as<float>();
  gemm(
      s.outputs, s.channels, s.images * s.pixels,
      PixelRows<kGemmStrideA>{launch.in[0].as<const float>(), s.outputs, s.pixels},
      PixelRows<kGemmNr>{launch.in[1].as<const float>(), s.channels, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        store_tile(tile, dw, s.channels, row, rows, column, columns, [](vf v, Size, Size) { return v; });
      },
      launch.executor, launch.pool);
}
