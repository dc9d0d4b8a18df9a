// Batches of matrix products with a function applied to each element of the result, packed and row by row. Included by
// vector code after simd.hpp (no include guard); the including .cpp includes cpu/gemm.hpp, cpu/products.hpp and
// cpu/scratch.hpp. `f` maps lanes along a row: f(values, column of the first lane); where n is 1, lanes along a column.
#include "lamina/kernels/cpu/simd/gemm.hpp"

template <class T, class F>
void products_packed(const Products& p, const T* a, const T* b, T* c, Executor& executor, MemoryPool& pool, F f) {
  auto one = [&](std::int64_t index) {
    T* const to = c + index * p.m * p.n;
    const auto store = [&](const float* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
                           std::int64_t columns) {
      store_tile(tile, to, p.n, row, rows, column, columns,
                 [&](vf x, std::int64_t, std::int64_t at) { return f(x, at); });
    };
    gemm(p.m, p.n, p.k, GemmA<T>{a + p.a_start(index), p.a_row, p.a_k},
         GemmB<T>{b + p.b_start(index), p.b_column, p.b_k}, store, executor, pool);
  };
  // Threads across the batch when it is large enough; inside the products otherwise.
  if (p.batch >= 2 * executor.width() && p.m * p.n * p.k * p.batch > 65536) {
    executor.run(p.batch, one);
  } else {
    for (std::int64_t index = 0; index < p.batch; ++index) one(index);
  }
}

template <int n>
struct Count {
  static constexpr int value = n;
};

/// y[j] = f(sum over k of x[k] w[k * k_stride + j]) for j in [0, n): rows of w are added up. The order of the sums is
/// that of the packed engine. `n` is at most kRowColumns.
inline constexpr std::int64_t kRowColumns = 1024;
template <class T, class F>
void add_rows(const float* x, const T* w, std::int64_t k_stride, std::int64_t k, T* y, std::int64_t n, F f) {
  alignas(64) float total[kRowColumns], part[kRowColumns];
  const std::int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
  for (std::int64_t j = 0; j < padded; ++j) total[j] = 0;
  for (std::int64_t k0 = 0; k0 < k; k0 += kGemmKc) {
    const std::int64_t end = k0 + kGemmKc < k ? k0 + kGemmKc : k;
    float* const sums = k0 == 0 ? total : part;
    for (std::int64_t j = 0; j < padded; ++j) sums[j] = 0;
    std::int64_t i = k0;
    auto rows = [&](auto count) {
      constexpr int kCount = decltype(count)::value;
      vf factors[kCount];
      const T* from[kCount];
      for (int r = 0; r < kCount; ++r) {
        factors[r] = broadcast(x[i + r]);
        from[r] = w + (i + r) * k_stride;
      }
      for (std::int64_t j = 0; j < padded; j += kLanes) {
        vf sum = load(sums + j);
        if (j + kLanes <= n) {
          for (int r = 0; r < kCount; ++r) sum = fma(factors[r], Lanes<T>::load(from[r] + j), sum);
        } else {
          for (int r = 0; r < kCount; ++r) sum = fma(factors[r], Lanes<T>::load(from[r] + j, n - j), sum);
        }
        store(sums + j, sum);
      }
      i += kCount;
    };
    while (i + 8 <= end) rows(Count<8>{});
    while (i < end) rows(Count<1>{});
    if (k0 > 0) {
      for (std::int64_t j = 0; j < padded; j += kLanes) store(total + j, load(total + j) + load(part + j));
    }
  }
  for (std::int64_t j = 0; j < n; j += kLanes) store_part(y + j, f(load(total + j), j), n - j);
}

/// y[j] = f(sum over k of x[k] w[j * line_stride + k]) for j in [0, n): dot products. Lanes run along k; they are added
/// up every kDotBlock elements.
inline constexpr std::int64_t kDotBlock = 64 * kLanes;
template <class T, class F>
void dot_lines(const float* x, const T* w, std::int64_t line_stride, std::int64_t k, T* y, std::int64_t n, F f) {
  constexpr int kGroup = 4;
  for (std::int64_t first = 0; first < n; first += kLanes) {
    const std::int64_t lines = n - first < kLanes ? n - first : kLanes;
    vf result{};
    for (std::int64_t j = 0; j < lines; j += kGroup) {
      const T* from[kGroup];
      for (int r = 0; r < kGroup; ++r) from[r] = w + (first + (j + r < lines ? j + r : j)) * line_stride;
      vf total[kGroup] = {};
      for (std::int64_t k0 = 0; k0 < k; k0 += kDotBlock) {
        const std::int64_t end = k0 + kDotBlock < k ? k0 + kDotBlock : k;
        vf sum[kGroup][2] = {};
        std::int64_t i = k0;
        for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
          const vf x0 = load(x + i), x1 = load(x + i + kLanes);
          for (int r = 0; r < kGroup; ++r) {
            sum[r][0] = fma(x0, Lanes<T>::load(from[r] + i), sum[r][0]);
            sum[r][1] = fma(x1, Lanes<T>::load(from[r] + i + kLanes), sum[r][1]);
          }
        }
        for (; i < end; i += kLanes) {
          const vf x0 = load_part(x + i, end - i);
          for (int r = 0; r < kGroup; ++r) sum[r][0] = fma(x0, load_part(from[r] + i, end - i), sum[r][0]);
        }
        for (int r = 0; r < kGroup; ++r) total[r] = total[r] + (sum[r][0] + sum[r][1]);
      }
      for (std::int64_t r = 0; r < kGroup && j + r < lines; ++r) result[j + r] = sum_lanes(total[r]);
    }
    store_part(y + first, f(result, first), lines);
  }
}

/// Products with m = 1 or n = 1 whose matrix has a unit stride, without packing: they are bound by reading the matrix.
template <class T, class F>
void products_rows(const Products& p, const T* a, const T* b, T* c, Executor& executor, MemoryPool& pool, F f) {
  if (p.m * p.n * p.batch == 0) return;
  const bool row = p.m == 1;
  const std::int64_t n = row ? p.n : p.m;
  const std::int64_t line_stride = row ? p.b_column : p.a_row, k_stride = row ? p.b_k : p.a_k;
  const std::int64_t x_stride = row ? p.a_k : p.b_k;
  const bool dots = k_stride == 1 && (line_stride != 1 || p.k > n);
  std::int64_t lines = dots ? 65536 / (p.k + 1) / kLanes * kLanes : kRowColumns;
  if (lines < kLanes) lines = kLanes;
  const std::int64_t blocks = (n + lines - 1) / lines;

  // The vector as dense f32, one for each product.
  const T* x_data = row ? a : b;
  const bool in_place = sizeof(T) == sizeof(float) && x_stride == 1;
  float stack[1024];
  const std::int64_t size = in_place ? 0 : p.k * p.batch;
  const Scratch scratch(pool, size <= 1024 ? 0 : static_cast<std::size_t>(size) * sizeof(float));
  float* const copies = size <= 1024 ? stack : scratch.floats();
  for (std::int64_t index = 0; !in_place && index < p.batch; ++index) {
    const T* from = x_data + (row ? p.a_start(index) : p.b_start(index));
    for (std::int64_t i = 0; i < p.k; ++i) copies[index * p.k + i] = Lanes<T>::get(from + i * x_stride);
  }
  auto run = [&](std::int64_t task) {
    const std::int64_t index = task / blocks, first = task % blocks * lines;
    const float* x = in_place ? reinterpret_cast<const float*>(x_data + (row ? p.a_start(index) : p.b_start(index)))
                              : copies + index * p.k;
    const T* w = (row ? b + p.b_start(index) : a + p.a_start(index)) + first * line_stride;
    T* const y = c + index * n + first;
    const std::int64_t count = n - first < lines ? n - first : lines;
    auto at = [&](vf v, std::int64_t j) { return f(v, row ? first + j : 0); };
    if (dots) {
      dot_lines(x, w, line_stride, p.k, y, count, at);
    } else {
      add_rows(x, w, k_stride, p.k, y, count, at);
    }
  };
  if (blocks * p.batch == 1 || n * p.k * p.batch <= 16384) {
    for (std::int64_t task = 0; task < blocks * p.batch; ++task) run(task);
  } else {
    executor.run(blocks * p.batch, run);
  }
}
