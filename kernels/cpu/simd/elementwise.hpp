// Loops of elementwise vector code: y[i] = f(x[i], ...) over a dense output and broadcast inputs. Included by vector
// code after simd.hpp (no include guard). `f` is called with lanes (vf) only; tails are padded.

/// `n` elements in a row. Input k is read from xs[k] on if steps[k] is 1; if it is 0, xs[k] has kLanes equal elements.
template <class T, int K, class F>
LAMINA_INLINE void elementwise_row(const T* const* xs, const std::int64_t* steps, T* y, std::int64_t n, F f) {
  auto call = [&](const vf* v) {
    if constexpr (K == 1) return f(v[0]);
    if constexpr (K == 2) return f(v[0], v[1]);
    if constexpr (K == 3) return f(v[0], v[1], v[2]);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    vf v[K];
    for (int k = 0; k < K; ++k) v[k] = Lanes<T>::load(xs[k] + i * steps[k]);
    Lanes<T>::store(y + i, call(v));
  }
  if (i < n) {
    vf v[K];
    for (int k = 0; k < K; ++k) v[k] = Lanes<T>::load(xs[k] + i * steps[k], n - i);
    Lanes<T>::store(y + i, call(v), n - i);
  }
}

/// kLanes copies of *x.
template <class T>
LAMINA_INLINE void repeat(const T* x, T* lanes) {
  const T value = *x;
  for (int i = 0; i < kLanes; ++i) lanes[i] = value;
}

/// Copies a tile of a strided operand to `to`, row by row: `columns` elements from x + starts[r] on.
template <class T>
[[gnu::noinline]] void gather_tile(const T* x, const std::int64_t* starts, std::int64_t rows, std::int64_t columns,
                                   std::int64_t step, T* to) {
  const bool along_rows = rows > 1 && starts[1] - starts[0] < step;  // transposed: neighbours are in different rows
  if (along_rows) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r) to[r * columns + c] = x[starts[r] + c * step];
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* from = x + starts[r];
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = from[c * step];
  }
}

/// Blocks of rows and columns of a strided problem, of kElementwiseBlock elements or so.
struct RowBlocks {
  std::int64_t rows, columns;  ///< of a block
  std::int64_t across;         ///< blocks beside each other
  std::int64_t count;
};
LAMINA_INLINE RowBlocks row_blocks(const StridedRows& rows, std::int64_t max_columns) {
  RowBlocks b{};
  b.columns = rows.inner < max_columns ? rows.inner : max_columns;
  b.rows = kElementwiseBlock / b.columns;
  b.across = (rows.inner + b.columns - 1) / b.columns;
  b.count = (rows.rows + b.rows - 1) / b.rows * b.across;
  return b;
}

/// The general case: broadcast operands whose rows are long and of step 0 or 1 are read in place; where rows are short
/// or steps larger, a tile of the operand is first copied into order.
template <class T, int K, class F>
[[gnu::noinline]] void elementwise_strided(Operands in, const Operand& out, Executor& executor, F f) {
  const StridedRows rows = strided_rows(out.shape(), in.first(K));
  T* y = out.as<T>();
  bool unit = true;
  for (int k = 0; k < K; ++k) unit = unit && rows.step[k] <= 1;
  if (unit && rows.inner >= 2 * kLanes) {
    const RowBlocks blocks = row_blocks(rows, kElementwiseBlock);
    auto run = [&](std::int64_t block) {
      const std::int64_t first = block / blocks.across * blocks.rows;
      const std::int64_t end = first + blocks.rows < rows.rows ? first + blocks.rows : rows.rows;
      const std::int64_t lo = block % blocks.across * blocks.columns;
      const std::int64_t n = rows.inner - lo < blocks.columns ? rows.inner - lo : blocks.columns;
      T repeated[K][kLanes];
      RowCursor cursor(rows, first);
      for (std::int64_t row = first; row < end; ++row, cursor.next()) {
        const T* xs[K];
        for (int k = 0; k < K; ++k) {
          xs[k] = in[k].as<const T>() + cursor.starts[k] + lo * rows.step[k];
          if (rows.step[k] == 0) {
            repeat(xs[k], repeated[k]);
            xs[k] = repeated[k];
          }
        }
        elementwise_row<T, K>(xs, rows.step.data(), y + row * rows.inner + lo, n, f);
      }
    };
    if (blocks.count == 1) return run(0);
    return executor.run(blocks.count, run);
  }

  constexpr std::int64_t kTile = 1024, kTileRows = 256, kSide = 32;
  enum class Mode { dense, repeated, same_rows, gathered } mode[K];
  bool rows_differ = false;
  for (int k = 0; k < K; ++k) {
    bool fixed = true;
    for (int d = 0; d < rows.rank; ++d) fixed = fixed && rows.outer[k][d] == 0;
    if (in[k].count() == out.count() && in[k].layout->is_contiguous()) {
      mode[k] = Mode::dense;
    } else if (fixed && rows.step[k] == 0) {
      mode[k] = Mode::repeated;
    } else {
      mode[k] = fixed ? Mode::same_rows : Mode::gathered;
      rows_differ = rows_differ || !fixed;
    }
  }
  const RowBlocks blocks = row_blocks(rows, unit ? kElementwiseBlock : kElementwiseBlock / kSide);
  auto run = [&](std::int64_t block) {
    const std::int64_t first = block / blocks.across * blocks.rows;
    const std::int64_t end = first + blocks.rows < rows.rows ? first + blocks.rows : rows.rows;
    const std::int64_t lo = block % blocks.across * blocks.columns;
    const std::int64_t hi = lo + blocks.columns < rows.inner ? lo + blocks.columns : rows.inner;
    // Tiles as wide as the rows where these are short, else square.
    const std::int64_t tile_columns = rows.inner <= 2 * kSide ? rows.inner : kSide;
    const std::int64_t tile_rows = kTile / tile_columns < kTileRows ? kTile / tile_columns : kTileRows;
    T tile[K][kTile];
    std::int64_t starts[K][kTileRows];
    RowCursor cursor(rows, first);
    for (std::int64_t row = first; row < end; row += tile_rows) {
      const std::int64_t m = end - row < tile_rows ? end - row : tile_rows;
      for (std::int64_t r = 0; r < m && (row == first || rows_differ); ++r, cursor.next()) {
        for (int k = 0; k < K; ++k) starts[k][r] = cursor.starts[k];
      }
      for (std::int64_t column = lo; column < hi; column += tile_columns) {
        const std::int64_t n = hi - column < tile_columns ? hi - column : tile_columns;
        const bool whole = n == rows.inner;
        const T* xs[K];
        std::int64_t steps[K];
        for (int k = 0; k < K; ++k) {
          const T* x = in[k].as<const T>();
          xs[k] = mode[k] == Mode::dense ? x + row * rows.inner + column : tile[k];
          steps[k] = mode[k] == Mode::repeated ? 0 : 1;
          if (mode[k] == Mode::repeated) repeat(x, tile[k]);
          const bool again = mode[k] == Mode::same_rows && whole && row > first;  // the tile has them already
          if (mode[k] >= Mode::same_rows && !again) {
            gather_tile(x + column * rows.step[k], starts[k], m, n, rows.step[k], tile[k]);
          }
        }
        T* to = y + row * rows.inner + column;
        if (whole) {
          elementwise_row<T, K>(xs, steps, to, m * n, f);
          continue;
        }
        for (std::int64_t r = 0; r < m; ++r) {
          elementwise_row<T, K>(xs, steps, to + r * rows.inner, n, f);
          for (int k = 0; k < K; ++k) xs[k] += mode[k] == Mode::dense ? rows.inner : n * steps[k];
        }
      }
    }
  };
  if (blocks.count == 1) return run(0);
  executor.run(blocks.count, run);
}

/// The whole op: K inputs broadcast to the output. Blocks depend on the shape only.
template <class T, int K, class F>
void elementwise(Operands in, const Operand& out, Executor& executor, F f) {
  const std::int64_t count = out.count();
  if (count == 0) return;
  const T* xs[K];
  std::int64_t steps[K];
  T repeated[K][kLanes];
  for (int k = 0; k < K; ++k) {
    xs[k] = in[k].as<const T>();
    const std::int64_t n = in[k].count();
    if (n == count && in[k].layout->is_contiguous()) {
      steps[k] = 1;
    } else if (n == 1) {
      repeat(xs[k], repeated[k]);
      xs[k] = repeated[k];
      steps[k] = 0;
    } else {
      return elementwise_strided<T, K>(in, out, executor, f);
    }
  }
  T* y = out.as<T>();
  auto run = [&](std::int64_t block) {
    const std::int64_t lo = block * kElementwiseBlock;
    const T* at[K];
    for (int k = 0; k < K; ++k) at[k] = xs[k] + lo * steps[k];
    const std::int64_t n = count - lo < kElementwiseBlock ? count - lo : kElementwiseBlock;
    elementwise_row<T, K>(at, steps, y + lo, n, f);
  };
  if (count <= kElementwiseBlock) return run(0);
  executor.run((count + kElementwiseBlock - 1) / kElementwiseBlock, run);
}
