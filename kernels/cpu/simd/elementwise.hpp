// Loops of elementwise vector code: y[i] = f(x[i], ...) over a dense output and broadcast inputs. Included by vector code
// after simd.hpp (no include guard). `f` is called with lanes (vf) only; tails are padded.

/// One row: `n` elements, input k read at xs[k] with step steps[k]. Steps of 0 and 1 are fast; others gather.
template <class T, int K, class F>
LAMINA_INLINE void elementwise_row(const T* const* xs, const std::int64_t* steps, T* y, std::int64_t n, F f) {
  bool unit = true;
  for (int k = 0; k < K; ++k) unit = unit && (steps[k] == 1 || steps[k] == 0);
  vf fixed[K];
  for (int k = 0; k < K; ++k) {
    if (steps[k] == 0 && n > 0) fixed[k] = broadcast(Lanes<T>::get(xs[k]));
  }
  auto call = [&](const vf* v) {
    if constexpr (K == 1) return f(v[0]);
    if constexpr (K == 2) return f(v[0], v[1]);
    if constexpr (K == 3) return f(v[0], v[1], v[2]);
  };
  std::int64_t i = 0;
  if (unit) {
    for (; i + kLanes <= n; i += kLanes) {
      vf v[K];
      for (int k = 0; k < K; ++k) v[k] = steps[k] == 0 ? fixed[k] : Lanes<T>::load(xs[k] + i);
      Lanes<T>::store(y + i, call(v));
    }
  }
  for (; i < n; i += kLanes) {
    const std::int64_t m = n - i < kLanes ? n - i : kLanes;
    vf v[K];
    for (int k = 0; k < K; ++k) {
      v[k] = vf{};
      for (std::int64_t j = 0; j < m; ++j) v[k][j] = Lanes<T>::get(xs[k] + (i + j) * steps[k]);
    }
    const vf r = call(v);
    for (std::int64_t j = 0; j < m; ++j) Lanes<T>::put(y + i + j, r[j]);
  }
}

/// The whole op: K inputs broadcast to the output. Blocks depend on the shape only.
template <class T, int K, class F>
void elementwise(Operands in, const Operand& out, Executor& executor, F f) {
  T* y = out.as<T>();
  const std::int64_t count = out.count();
  if (count == 0) return;
  bool flat = true;
  for (int k = 0; k < K; ++k) flat = flat && in[k].count() == count && in[k].layout->is_contiguous();
  if (flat) {
    const T* xs[K];
    std::int64_t steps[K];
    for (int k = 0; k < K; ++k) {
      xs[k] = in[k].as<const T>();
      steps[k] = 1;
    }
    if (count <= kElementwiseBlock) return elementwise_row<T, K>(xs, steps, y, count, f);
    executor.run((count + kElementwiseBlock - 1) / kElementwiseBlock, [&](std::int64_t block) {
      const std::int64_t lo = block * kElementwiseBlock;
      const T* at[K];
      for (int k = 0; k < K; ++k) at[k] = xs[k] + lo;
      const std::int64_t n = count - lo < kElementwiseBlock ? count - lo : kElementwiseBlock;
      elementwise_row<T, K>(at, steps, y + lo, n, f);
    });
    return;
  }
  const StridedRows rows = strided_rows(out.shape(), in.first(K));
  const std::int64_t rows_a_block = rows.inner >= kElementwiseBlock ? 1 : kElementwiseBlock / rows.inner;
  auto run = [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows.rows ? (block + 1) * rows_a_block : rows.rows;
    for (std::int64_t row = block * rows_a_block; row < end; ++row) {
      const T* at[K];
      for (int k = 0; k < K; ++k) at[k] = in[k].as<const T>() + rows.start(k, row);
      elementwise_row<T, K>(at, rows.step.data(), y + row * rows.inner, rows.inner, f);
    }
  };
  const std::int64_t blocks = (rows.rows + rows_a_block - 1) / rows_a_block;
  if (blocks == 1) return run(0);
  executor.run(blocks, run);
}
