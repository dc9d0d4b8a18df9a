#include "lamina/kernels/cpu/simd/reduce.hpp"

template <class T>
void embedding_grad(const Launch<EmbeddingGrad::Attrs>& launch) {
  constexpr std::int64_t kColumns = 128;
  const std::int64_t d = launch.out[0].shape()[1];
  const std::int64_t rows = launch.attrs.rows;
  const T* dy = launch.in[0].as<const T>();
  T* to = launch.out[0].as<T>();
  check_ids(EmbeddingGrad::name, ids_of(launch.in[1]), rows);
  if (rows == 0 || d == 0) return;
  const Grouped grouped(launch.pool, ids_of(launch.in[1]), rows);
  const std::int64_t* starts = grouped.starts.integers();
  const std::int64_t* positions = grouped.positions.integers();
  // Blocks of about as many positions and rows, by tiles of columns.
  const std::int64_t tiles = ceil_div(d, kColumns);
  const std::int64_t work = block_of(d < kColumns ? d : kColumns);
  const Scratch memory(launch.pool, static_cast<std::size_t>(rows + 1) * sizeof(std::int64_t));
  std::int64_t* begins = memory.integers();
  std::int64_t groups = 0;
  for (std::int64_t v = 0, done = 0; v < rows; ++v) {
    if (v == 0 || starts[v] + v - done >= work) {
      done = starts[v] + v;
      begins[groups++] = v;
    }
  }
  begins[groups] = rows;
  run_blocks(launch.executor, groups * tiles, [&](std::int64_t block) {
    const std::int64_t first = block % tiles * kColumns;
    const std::int64_t n = d - first < kColumns ? d - first : kColumns;
    for (std::int64_t v = begins[block / tiles]; v < begins[block / tiles + 1]; ++v) {
      const std::int64_t* at = positions + starts[v];
      const std::int64_t count = starts[v + 1] - starts[v];
      T* row = to + v * d + first;
      if (count <= 1) {
        for_each_vector(
            n, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
              store_part(row + j, count == 0 ? vf{} : load_part(dy + at[0] * d + first + j, m), m);
            });
        continue;
      }
      double totals[kColumns + kLanes] = {};
      double* const buffers[1] = {totals};
      reduce_rows<Summing, 1>(
          buffers, count,
          n, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v2) __attribute__((always_inline)) {
            v2[0] = load_part(dy + at[r] * d + first + j, m);
          });
      for (std::int64_t j = 0; j < n; ++j) Lanes<T>::put(row + j, static_cast<float>(totals[j]));
    }
  });
}
