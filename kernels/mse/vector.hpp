#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

template <class T>
void mse(const Launch<Mse::Attrs>& launch) {
  const std::int64_t n = launch.in[0].count();
  const T* x = launch.in[0].as<const T>();
  const T* y = launch.in[1].as<const T>();
  const std::int64_t blocks = ceil_div(n, kReduceBlock);
  double one = 0;
  const Scratch scratch = Scratch::of_doubles(launch.pool, blocks > 1 ? blocks : 0);
  double* partial = blocks > 1 ? scratch.doubles() : &one;
  run_blocks(launch.executor, blocks, [&](std::int64_t block) {
    const std::int64_t lo = block * kReduceBlock;
    Summing::Wide wide[1];
    reduce_run<Summing, 1>(
        wide, n - lo < kReduceBlock ? n - lo : kReduceBlock,
        [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
          const vf error = load_part(x + lo + i, m) - load_part(y + lo + i, m);
          v[0] = error * error;
        });
    partial[block] = wide[0].total();
  });
  double total = 0;
  for (std::int64_t block = 0; block < blocks; ++block) total += partial[block];
  Lanes<T>::put(launch.out[0].as<T>(), static_cast<float>(total / static_cast<double>(n)));
}

template <class T>
void mse_grad(const Launch<MseGrad::Attrs>& launch) {
  const float each = static_cast<float>(2 / static_cast<double>(launch.out[0].count()));
  elementwise<T, 3>(launch.in, launch.out[0], launch.executor,
                    [each](vf dy, vf x, vf y) { return dy * each * (x - y); });
}
