// Softmax along the last dim (lanes along the row) and along another one (lanes across the rows).
#include "lamina/kernels/cpu/simd/in_floats.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

/// Rows side by side that are worked on together.
inline constexpr std::int64_t kTile = 256;

/// row(offset) for each row along the last dim; else columns(offset, count) for each tile of rows side by side.
template <class Row, class Columns>
void for_each_row(const Shape& shape, int dim, Executor& executor, Row row, Columns columns) {
  if (shape.count() == 0) return;
  const Rows rows = rows_along(shape, dim);
  const std::int64_t tile = rows.inner < kTile ? rows.inner : kTile;
  const std::int64_t tiles = ceil_div(rows.inner, tile);
  const std::int64_t items = rows.outer * tiles;
  const std::int64_t items_a_block = block_of(rows.length * tile, kReduceBlock / 2);
  run_blocks(executor, ceil_div(items, items_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * items_a_block < items ? (block + 1) * items_a_block : items;
    for (std::int64_t n = block * items_a_block; n < end; ++n) {
      if (rows.inner == 1) {
        row(n * rows.length);
        continue;
      }
      const std::int64_t begin = n % tiles * tile;
      const std::int64_t count = rows.inner - begin < tile ? rows.inner - begin : tile;
      columns(n / tiles * rows.length * rows.inner + begin, count);
    }
  });
}

/// The largest; 0 if that is -inf: without a shift exp gives 0 and not NaN.
LAMINA_INLINE float row_shift(const float* x, std::int64_t n) {
  Choosing<LargerOf>::Wide wide;
  reduce_run<Choosing<LargerOf>, 1>(
      &wide, n, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
        v[0] = load_part(x + i, m, Choosing<LargerOf>::kRest);
      });
  const float m = wide.total();
  return m == -__builtin_inff() ? 0.0f : m;
}
LAMINA_INLINE void column_shifts(const float* x, std::int64_t rows, std::int64_t stride, std::int64_t count,
                                 float* to) {
  for (std::int64_t j = 0; j < count + kLanes; ++j) to[j] = -__builtin_inff();
  reduce_rows<Choosing<LargerOf>, 1>(
      &to, rows, count, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
        v[0] = load_part(x + r * stride + j, m, Choosing<LargerOf>::kRest);
      });
  for (std::int64_t j = 0; j < count; ++j) to[j] = to[j] == -__builtin_inff() ? 0.0f : to[j];
}

void softmax(const Launch<Softmax::Attrs>& launch) {
  const float* from = launch.in[0].as<const float>();
  float* to = launch.out[0].as<float>();
  const Rows rows = rows_along(launch.in[0].shape(), launch.attrs.dim);
  for_each_row(
      launch.in[0].shape(), launch.attrs.dim, launch.executor,
      [&](std::int64_t at) {
        const float* x = from + at;
        float* y = to + at;
        const vf shift = broadcast(row_shift(x, rows.length));
        Summing::Wide wide;
        reduce_run<Summing, 1>(
            &wide, rows.length, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = exp(load_part(x + i, m, -__builtin_inff()) - shift);
              store_part(y + i, v[0], m);
            });
        const double total = wide.total();
        const float scale = total == 0 ? 0.0f : static_cast<float>(1 / total);
        for_each_vector(
            rows.length, [&](std::int64_t i, std::int64_t m)
                             __attribute__((always_inline)) { store_part(y + i, load_part(y + i, m) * scale, m); });
      },
      [&](std::int64_t at, std::int64_t count) {
        const float* x = from + at;
        float* y = to + at;
        float shift[kTile + kLanes];
        column_shifts(x, rows.length, rows.inner, count, shift);
        double total[kTile + kLanes] = {};
        double* const totals[1] = {total};
        reduce_rows<Summing, 1>(
            totals, rows.length,
            count, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = exp(load_part(x + r * rows.inner + j, m, -__builtin_inff()) - load_part(shift + j, m));
              store_part(y + r * rows.inner + j, v[0], m);
            });
        for (std::int64_t j = 0; j < count; ++j) shift[j] = total[j] == 0 ? 0.0f : static_cast<float>(1 / total[j]);
        for (std::int64_t r = 0; r < rows.length; ++r) {
          for_each_vector(
              count, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
                float* p = y + r * rows.inner + j;
                store_part(p, load_part(p, m) * load_part(shift + j, m), m);
              });
        }
      });
}

/// The logarithm of a sum that is at least 1; 0 for the sum of a row of -inf.
LAMINA_INLINE float log_of(double total) { return total == 0 ? 0.0f : log(broadcast(static_cast<float>(total)))[0]; }

void log_softmax(const Launch<LogSoftmax::Attrs>& launch) {
  const float* from = launch.in[0].as<const float>();
  float* to = launch.out[0].as<float>();
  const Rows rows = rows_along(launch.in[0].shape(), launch.attrs.dim);
  for_each_row(
      launch.in[0].shape(), launch.attrs.dim, launch.executor,
      [&](std::int64_t at) {
        const float* x = from + at;
        const vf shift = broadcast(row_shift(x, rows.length));
        Summing::Wide wide;
        reduce_run<Summing, 1>(
            &wide, rows.length, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = exp(load_part(x + i, m, -__builtin_inff()) - shift);
            });
        const float log_total = log_of(wide.total());
        for_each_vector(
            rows.length, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
              store_part(to + at + i, load_part(x + i, m) - shift - log_total, m);
            });
      },
      [&](std::int64_t at, std::int64_t count) {
        const float* x = from + at;
        float shift[kTile + kLanes];
        column_shifts(x, rows.length, rows.inner, count, shift);
        double total[kTile + kLanes] = {};
        double* const totals[1] = {total};
        reduce_rows<Summing, 1>(
            totals, rows.length,
            count, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = exp(load_part(x + r * rows.inner + j, m, -__builtin_inff()) - load_part(shift + j, m));
            });
        float log_total[kTile + kLanes];
        for (std::int64_t j = 0; j < count; ++j) log_total[j] = log_of(total[j]);
        for (std::int64_t r = 0; r < rows.length; ++r) {
          for_each_vector(
              count, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
                const std::int64_t i = r * rows.inner + j;
                store_part(to + at + i, load_part(x + i, m) - load_part(shift + j, m) - load_part(log_total + j, m), m);
              });
        }
      });
}

/// dx = gradient(dy, y, sum of term(dy, y) over the row). Both are called with lanes.
template <class R, class Term, class Gradient>
LAMINA_INLINE void row_gradient(const Operand& cotangent, const Operand& result, const Operand& out, int dim,
                                Executor& executor, Term term, Gradient gradient) {
  const float* dy = cotangent.as<const float>();
  const float* y = result.as<const float>();
  float* dx = out.as<float>();
  const Rows rows = rows_along(out.shape(), dim);
  for_each_row(
      out.shape(), dim, executor,
      [&](std::int64_t at) {
        Summing::Wide wide;
        reduce_run<R, 1>(
            &wide, rows.length, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = term(load_part(dy + at + i, m), load_part(y + at + i, m));
            });
        const vf total = broadcast(static_cast<float>(wide.total()));
        for_each_vector(
            rows.length, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
              store_part(dx + at + i, gradient(load_part(dy + at + i, m), load_part(y + at + i, m), total), m);
            });
      },
      [&](std::int64_t at, std::int64_t count) {
        double total[kTile + kLanes] = {};
        double* const totals[1] = {total};
        reduce_rows<R, 1>(
            totals, rows.length,
            count, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
              const std::int64_t i = at + r * rows.inner + j;
              v[0] = term(load_part(dy + i, m), load_part(y + i, m));
            });
        float sums[kTile + kLanes];
        for (std::int64_t j = 0; j < count; ++j) sums[j] = static_cast<float>(total[j]);
        for (std::int64_t r = 0; r < rows.length; ++r) {
          for_each_vector(
              count, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
                const std::int64_t i = at + r * rows.inner + j;
                store_part(dx + i, gradient(load_part(dy + i, m), load_part(y + i, m), load_part(sums + j, m)), m);
              });
        }
      });
}

void softmax_grad(const Launch<SoftmaxGrad::Attrs>& launch) {
  row_gradient<Summing>(
      launch.in[0], launch.in[1], launch.out[0], launch.attrs.dim, launch.executor,
      [](vf dy, vf y) __attribute__((always_inline)) { return dy * y; },
      [](vf dy, vf y, vf total) __attribute__((always_inline)) { return y * (dy - total); });
}

void log_softmax_grad(const Launch<LogSoftmaxGrad::Attrs>& launch) {
  // The cotangents of a long row cancel.
  row_gradient<SummingExactly>(
      launch.in[0], launch.in[1], launch.out[0], launch.attrs.dim, launch.executor,
      [](vf dy, vf) __attribute__((always_inline)) { return dy; },
      [](vf dy, vf y, vf total) __attribute__((always_inline)) { return dy - exp(y) * total; });
}

// Of any storage.
template <class T>
void softmax_in(const Launch<Softmax::Attrs>& launch) {
  in_floats<T>(launch, softmax);
}
template <class T>
void softmax_grad_in(const Launch<SoftmaxGrad::Attrs>& launch) {
  in_floats<T>(launch, softmax_grad);
}
template <class T>
void log_softmax_in(const Launch<LogSoftmax::Attrs>& launch) {
  in_floats<T>(launch, log_softmax);
}
template <class T>
void log_softmax_grad_in(const Launch<LogSoftmaxGrad::Attrs>& launch) {
  in_floats<T>(launch, log_softmax_grad);
}
