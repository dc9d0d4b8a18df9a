#include "lamina/kernels/cpu/simd/groups.hpp"

void sgd_step(const Launch<SgdStep::Attrs>& launch) {
  const auto& a = launch.attrs;
  const std::int64_t n = a.count;
  const float rate = static_cast<float>(a.lr);
  const float momentum = static_cast<float>(a.momentum);
  const float decay = static_cast<float>(a.weight_decay);
  const float scale = static_cast<float>(a.gradient_scale);
  for_each_group_block(launch.in.first(static_cast<std::size_t>(n)), launch.executor,
                       [&](std::int64_t t, std::int64_t lo, std::int64_t count) {
                         const float* p = launch.in[t].as<const float>() + lo;
                         const float* g = launch.in[n + t].as<const float>() + lo;
                         const float* v = momentum > 0 ? launch.in[2 * n + t].as<const float>() + lo : nullptr;
                         float* p_out = launch.out[t].as<float>() + lo;
                         float* v_out = momentum > 0 ? launch.out[n + t].as<float>() + lo : nullptr;
                         for (std::int64_t i = 0; i < count; i += kLanes) {
                           const std::int64_t m = count - i < kLanes ? count - i : kLanes;
                           const bool whole = m == kLanes;
                           const vf value = whole ? load(p + i) : load_first(p + i, m);
                           const vf gradient = whole ? load(g + i) : load_first(g + i, m);
                           const vf d = scale * gradient + decay * value;
                           vf step = d;
                           if (momentum > 0) {
                             const vf velocity = momentum * (whole ? load(v + i) : load_first(v + i, m)) + d;
                             step = a.nesterov ? d + momentum * velocity : velocity;
                             whole ? store(v_out + i, velocity) : store_first(v_out + i, velocity, m);
                           }
                           const vf next = value - rate * step;
                           whole ? store(p_out + i, next) : store_first(p_out + i, next, m);
                         }
                       });
}
