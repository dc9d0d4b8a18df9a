// A window's largest element is the largest of its rows' largest, and a row of x serves all windows that have it: rows
// are reduced along their columns once, into as many lines as a window has rows, by lanes of outputs. "Larger" is a
// total order of (value, place), so that the order of the comparisons does not show in the result.
#include "lamina/kernels/cpu/simd/windows.hpp"

struct Best {
  vf value;
  vi place;
};

/// Takes v where it is larger. NaN is larger than numbers, nothing is larger than NaN, and the first of equals stays.
LAMINA_INLINE void improve(Best& best, vf v, vi place) {
  const vi larger = ~(v <= best.value) & (best.value == best.value);
  best.value = larger ? v : best.value;
  best.place = larger ? place : best.place;
}

/// The best of each window of a row whose first place is `start`, as values and places.
template <int kStep>
LAMINA_INLINE void best_of_row(const WindowAxis& columns, const float* row, std::int64_t start, float* values,
                               float* places) {
  const vi apart = lane_numbers() * static_cast<std::int32_t>(columns.stride);
  for (std::int64_t j = 0; j < columns.outputs; j += kLanes) {
    const vi column = apart + static_cast<std::int32_t>(j * columns.stride - columns.padding);
    // The padding is -inf and never larger: a window of nothing but -inf keeps its first place inside.
    Best best{broadcast(-__builtin_inff()), (column < 0 ? vi{} : column) + static_cast<std::int32_t>(start)};
    for (std::int64_t k = 0; k < columns.kernel; ++k) {
      improve(best, load_apart<kStep>(row + j * columns.stride + k, columns.stride),
              column + static_cast<std::int32_t>(start + k));
    }
    store(values + j, best.value);
    store(places + j, float_of(best.place));
  }
}

LAMINA_INLINE void store_places(std::int64_t* to, vi places, std::int64_t n) {
  typedef std::int32_t half_lanes __attribute__((vector_size(2 * LAMINA_LANES)));
  typedef std::int64_t wide_lanes __attribute__((vector_size(4 * LAMINA_LANES)));
  if (n < kLanes) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = places[i];
    return;
  }
  union {
    vi whole;
    half_lanes half[2];
  } x{places};
  for (int h = 0; h < 2; ++h) {
    const wide_lanes wide = __builtin_convertvector(x.half[h], wide_lanes);
    __builtin_memcpy(to + h * kLanes / 2, &wide, sizeof(wide));
  }
}

template <class T>
void max_pool2d(const Launch<MaxPool2d::Attrs>& launch) {
  const Shape &image = launch.in[0].shape(), &pooled = launch.out[0].shape();
  if (pooled.count() == 0) return;
  const WindowAxis rows = window_axis(launch.attrs, 0, image, pooled),
                   columns = window_axis(launch.attrs, 1, image, pooled);
  const std::int64_t planes = image[0] * image[1];
  const std::int64_t x_plane = rows.extent * columns.extent, y_plane = rows.outputs * columns.outputs;
  const std::int64_t kept = least(rows.kernel, rows.extent), line = whole_outputs(columns);
  const std::int64_t planes_a_block = block_of(x_plane + y_plane);
  run_blocks(launch.executor, ceil_div(planes, planes_a_block), [&](std::int64_t block) {
    const Scratch scratch = Scratch::of_floats(launch.pool, row_floats(columns) + 2 * kept * line);
    float* const row = scratch.floats();
    float* const values = row + row_floats(columns);
    float* const places = values + kept * line;
    fill(row, row_floats(columns), -__builtin_inff());
    const std::int64_t begin = block * planes_a_block, end = least(planes, begin + planes_a_block);
    T* y = launch.out[0].as<T>() + begin * y_plane;
    std::int64_t* where = launch.out[1].as<std::int64_t>() + begin * y_plane;
    std::int64_t left = (end - begin) * y_plane;  // outputs of this block that are not written yet
    for (std::int64_t plane = begin; plane < end; ++plane) {
      const T* x = launch.in[0].as<const T>() + plane * x_plane;
      std::int64_t next = 0;  // the rows before it are done
      for (std::int64_t o = 0; o < rows.outputs; ++o) {
        const Range window = rows.elements_of(o);
        for (next = most(next, window.lo); next < window.hi; ++next) {
          for_each_vector(
              columns.extent, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
                store(row + columns.padding + i, load_part(x + next * columns.extent + i, m, -__builtin_inff()));
              });
          const std::int64_t slot = next % kept * line;
          with_step(
              columns.stride, [&]<int kStep>() __attribute__((always_inline)) {
                best_of_row<kStep>(columns, row, next * columns.extent, values + slot, places + slot);
              });
        }
        for (std::int64_t j = 0; j < columns.outputs; j += kLanes) {
          std::int64_t slot = window.lo % kept * line + j;
          Best best{load(values + slot), bits_of(load(places + slot))};
          for (std::int64_t i = window.lo + 1; i < window.hi; ++i) {
            slot = i % kept * line + j;
            improve(best, load(values + slot), bits_of(load(places + slot)));
          }
          // Lanes past the end of a row are overwritten by the next one.
          const std::int64_t n = least(kLanes, left - j);
          store_part(y + j, best.value, n);
          store_places(where + j, best.place, n);
        }
        y += columns.outputs;
        where += columns.outputs;
        left -= columns.outputs;
      }
    }
  });
}
