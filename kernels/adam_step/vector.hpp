#include "lamina/kernels/cpu/simd/groups.hpp"

void adam_step(const Launch<AdamStep::Attrs>& launch) {
  const auto& a = launch.attrs;
  const std::int64_t n = a.count;
  const AdamFactors k = adam_factors(a);
  for_each_group_block(launch.in.first(static_cast<std::size_t>(n)), launch.executor,
                       [&](std::int64_t t, std::int64_t lo, std::int64_t count) {
                         const float* in[4];
                         float* out[3];
                         for (int s = 0; s < 4; ++s) in[s] = launch.in[s * n + t].as<const float>() + lo;
                         for (int s = 0; s < 3; ++s) out[s] = launch.out[s * n + t].as<float>() + lo;
                         for (std::int64_t i = 0; i < count; i += kLanes) {
                           const std::int64_t m = count - i < kLanes ? count - i : kLanes;
                           vf x[4];
                           for (int s = 0; s < 4; ++s) x[s] = m == kLanes ? load(in[s] + i) : load_first(in[s] + i, m);
                           const vf g = k.scale * x[1] + k.decay * x[0];
                           const vf mean = k.beta1 * x[2] + k.rest1 * g;
                           const vf square = k.beta2 * x[3] + k.rest2 * (g * g);
                           const vf denominator = sqrt(square * k.inverse_correction2) + k.epsilon;
                           const vf value = k.keep * x[0] - k.rate * (mean / denominator);
                           const vf y[3] = {value, mean, square};
                           for (int s = 0; s < 3; ++s) {
                             m == kLanes ? store(out[s] + i, y[s]) : store_first(out[s] + i, y[s], m);
                           }
                         }
                       });
}
