// Fused multiply-adds on 12 independent accumulators: enough to hide the latency of two units.
[[maybe_unused]] float fma_rounds(std::int64_t rounds) {
  vf sums[12];
  for (int i = 0; i < 12; ++i) sums[i] = broadcast(1.0f + 0.001f * static_cast<float>(i));
  const vf a = broadcast(0.999f);
  const vf b = broadcast(0.001f);
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < 12; ++i) sums[i] = fma(sums[i], a, b);
  }
  vf total = sums[0];
  for (int i = 1; i < 12; ++i) total += sums[i];
  return sum_lanes(total);
}

[[maybe_unused]] void add_arrays(const float* b, const float* c, float* a, std::int64_t n) {
  for (std::int64_t i = 0; i + kLanes <= n; i += kLanes) store(a + i, load(b + i) + load(c + i));
}
