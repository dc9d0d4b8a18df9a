// Sum of squares of n <= kElementwiseBlock elements, in four accumulators of lanes.
float sum_of_squares(const float* x, std::int64_t n) {
  vf sums[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const vf v = load(x + i + j * kLanes);
      sums[j] = fma(v, v, sums[j]);
    }
  }
  for (; i < n; i += kLanes) {
    const vf v = n - i < kLanes ? load_first(x + i, n - i) : load(x + i);
    sums[0] = fma(v, v, sums[0]);
  }
  return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void global_norm(const Launch<GlobalNorm::Attrs>& launch) { norm_of_blocks(launch, sum_of_squares); }
