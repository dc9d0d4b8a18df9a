#include "lamina/kernels/cpu/simd/in_floats.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

void layer_norm(const Launch<LayerNorm::Attrs>& launch) {
  const std::int64_t d = launch.in[0].shape().back(1);
  const std::int64_t rows = launch.out[1].count();
  const float* gamma = launch.in[1].as<const float>();
  const float* beta = launch.in[2].as<const float>();
  const std::int64_t rows_a_block = block_of(d, kReduceBlock / 2);
  run_blocks(launch.executor, ceil_div(rows, rows_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows ? (block + 1) * rows_a_block : rows;
    for (std::int64_t r = block * rows_a_block; r < end; ++r) {
      const float* x = launch.in[0].as<const float>() + r * d;
      float* y = launch.out[0].as<float>() + r * d;
      Summing::Wide sum;
      reduce_run<SummingExactly, 1>(
          &sum, d, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
            v[0] = load_part(x + i, m);
          });
      // Deviations from a coarse mean are small: their squares lose nothing, however large the mean is beside them.
      const double mean = sum.total() / static_cast<double>(d);
      const float coarse = static_cast<float>(mean);
      const double rest = mean - static_cast<double>(coarse);
      Summing::Wide squares;
      reduce_run<Summing, 1>(
          &squares, d, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
            const vf deviation = load_part(x + i, m, coarse) - coarse;
            v[0] = deviation * deviation;
          });
      const double variance = squares.total() / static_cast<double>(d) - rest * rest;
      const double rstd = 1 / __builtin_sqrt((variance > 0 ? variance : 0) + launch.attrs.epsilon);
      const vf scale = broadcast(static_cast<float>(rstd));
      const vf shift = broadcast(static_cast<float>(-rest * rstd));
      for_each_vector(
          d, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
            const vf hat = fma(load_part(x + i, m) - coarse, scale, shift);
            store_part(y + i, fma(hat, load_part(gamma + i, m), load_part(beta + i, m)), m);
          });
      launch.out[1].as<float>()[r] = coarse;
      launch.out[2].as<float>()[r] = static_cast<float>(rstd);
    }
  });
}

void layer_norm_grad(const Launch<LayerNormGrad::Attrs>& launch) {
  const std::int64_t d = launch.in[1].shape().back(1);
  const std::int64_t rows = launch.in[3].count();
  const float* dy = launch.in[0].as<const float>();
  const float* x = launch.in[1].as<const float>();
  const float* gamma = launch.in[2].as<const float>();
  const float* mean = launch.in[3].as<const float>();
  const float* rstd = launch.in[4].as<const float>();
  float* dx = launch.out[0].as<float>();
  // Blocks long enough that their column sums are little beside the rows.
  const std::int64_t rows_a_block = ceil_div(block_of(d, 2 * kReduceBlock), 8) * 8 + 8;
  const std::int64_t blocks = ceil_div(rows, rows_a_block);
  const std::int64_t padded = d + kLanes;
  const Scratch scratch = Scratch::of_doubles(launch.pool, 2 * blocks * padded);
  double* partial = scratch.doubles();
  run_blocks(launch.executor, blocks, [&](std::int64_t block) {
    double* const sums[2] = {partial + 2 * block * padded, partial + (2 * block + 1) * padded};
    for (std::int64_t j = 0; j < 2 * padded; ++j) sums[0][j] = 0;
    const std::int64_t end = (block + 1) * rows_a_block < rows ? (block + 1) * rows_a_block : rows;
    // Eight rows at a time, for the column sums; they stay in the cache between the two passes.
    for (std::int64_t begin = block * rows_a_block; begin < end; begin += 8) {
      const std::int64_t count = end - begin < 8 ? end - begin : 8;
      for (std::int64_t r = begin; r < begin + count; ++r) {
        Summing::Wide wide[2];
        const vf scale = broadcast(rstd[r]);
        reduce_run<Summing, 2>(
            wide, d, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = load_part(dy + r * d + i, m) * load_part(gamma + i, m);
              v[1] = v[0] * (load_part(x + r * d + i, m) - mean[r]);
            });
        // rstd (g - mean(g) - hat mean(hat g)), with hat = (x - mean) rstd taken apart, and mean(g) in two floats: the
        // g of a row can be nearly equal, and one of one element is.
        const double r1 = static_cast<double>(rstd[r]);
        const vf b = broadcast(static_cast<float>(-wide[1].total() / static_cast<double>(d) * r1 * r1 * r1));
        const double mean_g = wide[0].total() / static_cast<double>(d);
        const float coarse = static_cast<float>(mean_g);
        const vf c = broadcast(static_cast<float>((static_cast<double>(coarse) - mean_g) * r1));
        for_each_vector(
            d, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
              const vf g = load_part(dy + r * d + i, m) * load_part(gamma + i, m);
              store_part(dx + r * d + i, fma(g - coarse, scale, fma(load_part(x + r * d + i, m) - mean[r], b, c)), m);
            });
      }
      reduce_rows<Summing, 2>(
          sums, count, d, [&](std::int64_t k, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
            const std::int64_t r = begin + k;
            v[1] = load_part(dy + r * d + j, m);
            v[0] = v[1] * ((load_part(x + r * d + j, m) - mean[r]) * rstd[r]);
          });
    }
  });
  for (int which = 0; which < 2; ++which) {
    float* to = launch.out[1 + which].as<float>();
    for (std::int64_t j = 0; j < d; ++j) {
      double total = 0;
      for (std::int64_t b = 0; b < blocks; ++b) total += partial[(2 * b + which) * padded + j];
      to[j] = static_cast<float>(total);
    }
  }
}

// Of any storage.
template <class T>
void layer_norm_in(const Launch<LayerNorm::Attrs>& launch) {
  in_floats<T>(launch, layer_norm);
}
template <class T>
void layer_norm_grad_in(const Launch<LayerNormGrad::Attrs>& launch) {
  in_floats<T>(launch, layer_norm_grad);
}
