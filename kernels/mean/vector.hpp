#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

template <class T>
void mean(const Launch<Mean::Attrs>& launch) {
  const auto count = static_cast<double>(reduced_count(launch.attrs, launch.in[0].shape()));
  reduce<Summing, T>(launch.in[0], launch.attrs.axes, launch.out[0], launch.executor, launch.pool,
                     [&](double total) { return static_cast<float>(total / count); });
}

template <class T>
void mean_grad(const Launch<MeanGrad::Attrs>& launch) {
  if (launch.out[0].count() == 0) return;
  const std::int64_t repeats = launch.out[0].count() / launch.in[0].count();
  const float scale = static_cast<float>(1.0 / static_cast<double>(repeats));
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [scale](vf x) { return x * scale; });
}
