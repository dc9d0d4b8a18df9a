// Sums of windows are taken apart: first along the columns of x, by lanes of the row, then along the row of these sums.
// The gradient is the same sum over the windows that an element is in.
#include "lamina/kernels/cpu/simd/windows.hpp"

/// How many elements window `o` has along an axis, those of the padding counted or not.
LAMINA_INLINE float window_size(const WindowAxis& axis, bool count_padding, std::int64_t o) {
  const Range inside = axis.elements_of(o);
  return static_cast<float>(count_padding ? axis.kernel : inside.hi - inside.lo);
}
/// That of all windows of a row; lanes past the last have 1.
LAMINA_INLINE void window_widths(const WindowAxis& columns, bool count_padding, float* to) {
  for (std::int64_t o = 0; o < whole_outputs(columns); ++o) {
    to[o] = o < columns.outputs ? window_size(columns, count_padding, o) : 1.0f;
  }
}

template <class T>
void avg_pool2d(const Launch<AvgPool2d::Attrs>& launch) {
  const Shape &image = launch.in[0].shape(), &pooled = launch.out[0].shape();
  if (pooled.count() == 0) return;
  const WindowAxis rows = window_axis(launch.attrs.window, 0, image, pooled),
                   columns = window_axis(launch.attrs.window, 1, image, pooled);
  const bool count_padding = launch.attrs.count_padding;
  const std::int64_t planes = image[0] * image[1];
  const std::int64_t x_plane = rows.extent * columns.extent, y_plane = rows.outputs * columns.outputs;
  const std::int64_t planes_a_block = block_of(x_plane + y_plane);
  run_blocks(launch.executor, ceil_div(planes, planes_a_block), [&](std::int64_t block) {
    const Scratch scratch = Scratch::of_floats(launch.pool, row_floats(columns) + whole_outputs(columns));
    float* const row = scratch.floats();
    float* const widths = row + row_floats(columns);
    fill(row, row_floats(columns), 0);
    window_widths(columns, count_padding, widths);
    const std::int64_t begin = block * planes_a_block, end = least(planes, begin + planes_a_block);
    T* y = launch.out[0].as<T>() + begin * y_plane;
    std::int64_t left = (end - begin) * y_plane;  // outputs of this block that are not written yet
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* x = launch.in[0].as<const T>() + plane * x_plane;
      for (std::int64_t o = 0; o < rows.outputs; ++o) {
        const Range window = rows.elements_of(o);
        for_each_vector(
            columns.extent, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
              vf sum = load_part(x + window.lo * columns.extent + i, m);
              for (std::int64_t r = window.lo + 1; r < window.hi; ++r) sum += load_part(x + r * columns.extent + i, m);
              store(row + columns.padding + i, sum);
            });
        const vf height = broadcast(window_size(rows, count_padding, o));
        with_step(
            columns.stride, [&]<int kStep>() __attribute__((always_inline)) {
              for (std::int64_t j = 0; j < columns.outputs; j += kLanes) {
                const float* at = row + j * columns.stride;
                vf sum = load_apart<kStep>(at, columns.stride);
                for (std::int64_t k = 1; k < columns.kernel; ++k) sum += load_apart<kStep>(at + k, columns.stride);
                // Lanes past the end of a row are overwritten by the next one.
                store_part(y + j, sum / (height * load(widths + j)), least(kLanes, left - j));
              }
            });
        y += columns.outputs;
        left -= columns.outputs;
      }
    }
  });
}

template <class T>
void avg_pool2d_grad(const Launch<AvgPool2dGrad::Attrs>& launch) {
  const Shape &image = launch.out[0].shape(), &pooled = launch.in[0].shape();
  if (image.count() == 0) return;
  const AvgPool2dAttrs& pool = launch.attrs.pool;
  const WindowAxis rows = window_axis(pool.window, 0, image, pooled),
                   columns = window_axis(pool.window, 1, image, pooled);
  const std::int64_t planes = image[0] * image[1];
  const std::int64_t x_plane = rows.extent * columns.extent, y_plane = rows.outputs * columns.outputs;
  const std::int64_t planes_a_block = block_of(x_plane + y_plane);
  run_blocks(launch.executor, ceil_div(planes, planes_a_block), [&](std::int64_t block) {
    // `row` has the share of window o at shares + o * stride and zeros between, so that element i of x is the sum of
    // the `kernel` elements from i on.
    const Scratch scratch = Scratch::of_floats(launch.pool, row_floats(columns) + whole_outputs(columns));
    float* const row = scratch.floats();
    float* const shares = row + columns.kernel - 1 - columns.padding;
    float* const widths = row + row_floats(columns);
    fill(row, row_floats(columns), 0);
    window_widths(columns, pool.count_padding, widths);
    const std::int64_t begin = block * planes_a_block, end = least(planes, begin + planes_a_block);
    T* dx = launch.out[0].as<T>() + begin * x_plane;
    std::int64_t left = (end - begin) * x_plane;  // elements of this block that are not written yet
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* dy = launch.in[0].as<const T>() + plane * y_plane;
      for (std::int64_t i = 0; i < rows.extent; ++i) {
        const Range windows = rows.windows_of(i);
        for_each_vector(
            columns.outputs, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
              vf sum{};
              for (std::int64_t o = windows.lo; o < windows.hi; ++o) {
                const vf by = load(widths + j) * window_size(rows, pool.count_padding, o);
                sum += load_part(dy + o * columns.outputs + j, m) / by;
              }
              if (columns.stride == 1) {
                store(shares + j, sum);
              } else if (columns.stride == 2) {
                store(shares + 2 * j, interleave_low(sum, vf{}));
                store(shares + 2 * j + kLanes, interleave_high(sum, vf{}));
              } else {
                for (std::int64_t l = 0; l < m; ++l) shares[(j + l) * columns.stride] = sum[l];
              }
            });
        for (std::int64_t j = 0; j < columns.extent; j += kLanes) {
          vf sum = load(row + j);
          for (std::int64_t k = 1; k < columns.kernel; ++k) sum += load(row + j + k);
          // Lanes past the end of a row are overwritten by the next one.
          store_part(dx + j, sum, least(kLanes, left - j));
        }
        dx += columns.extent;
        left -= columns.extent;
      }
    }
  });
}
