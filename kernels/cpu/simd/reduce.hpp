// Reduction loops of vector code. Included by vector code after simd.hpp (no include guard); the kernel file has
// included kernels/cpu/reduce.hpp before.
//
// Accuracy: a float lane takes some addends at most before it is folded into doubles, so that the error does not grow
// with the count. Order: a block's result depends on its elements only, and blocks are joined in their order.

typedef float vhalf __attribute__((vector_size(2 * LAMINA_LANES)));
typedef double vd __attribute__((vector_size(4 * LAMINA_LANES)));  // half as many lanes as vf
typedef double vd_unaligned __attribute__((vector_size(4 * LAMINA_LANES), aligned(8), may_alias));

struct Doubles {
  vd lo, hi;
};
LAMINA_INLINE Doubles to_doubles(vf v) {
  union {
    vf whole;
    vhalf half[2];
  } x{v};
  return {__builtin_convertvector(x.half[0], vd), __builtin_convertvector(x.half[1], vd)};
}
/// In a fixed order: halves pairwise.
LAMINA_INLINE double sum_lanes(vd v) {
#if LAMINA_REGISTER_LANES == 16
  const __m256d half = _mm512_castpd512_pd256(v) + _mm512_extractf64x4_pd(v, 1);
  const __m128d pair = _mm256_castpd256_pd128(half) + _mm256_extractf128_pd(half, 1);
#elif LAMINA_REGISTER_LANES == 8
  union {
    vd whole;
    __m256d r[kRegisters];
  } x{v};
  for (int i = 1; i < kRegisters; ++i) x.r[0] += x.r[i];
  const __m128d pair = _mm256_castpd256_pd128(x.r[0]) + _mm256_extractf128_pd(x.r[0], 1);
#else
  const __m128d pair = v;
#endif
  return pair[0] + pair[1];
}

/// True when a comparison holds in some lane.
LAMINA_INLINE bool any(vi mask) {
#if LAMINA_REGISTER_LANES == 16
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#elif LAMINA_REGISTER_LANES == 8
  Registers x{float_of(mask)};
  int bits = 0;
  for (int i = 0; i < kRegisters; ++i) bits |= _mm256_movemask_ps(x.r[i]);
  return bits != 0;
#else
  return _mm_movemask_ps(float_of(mask)) != 0;
#endif
}

/// The m lanes at p (m <= kLanes), the others `rest`.
template <class T>
LAMINA_INLINE vf load_part(const T* p, std::int64_t m, float rest = 0) {
  if (m == kLanes) return Lanes<T>::load(p);
  if constexpr (sizeof(T) == sizeof(float)) {
    return load_first(p, m, rest);
  } else {
    return first_lanes(m) ? Lanes<T>::load(p, m) : broadcast(rest);
  }
}
template <class T>
LAMINA_INLINE void store_part(T* p, vf v, std::int64_t m) {
  if (m == kLanes) return Lanes<T>::store(p, v);
  Lanes<T>::store(p, v, m);
}

/// f(i, m) for the vectors of n elements: m is kLanes, less for the last.
template <class F>
LAMINA_INLINE void for_each_vector(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, std::int64_t{kLanes});
  if (i < n) f(i, n - i);
}

// ---- what is computed: sums in doubles, largest and smallest in floats ----

struct Summing {
  static constexpr int kGroup = 8;  ///< values joined in floats at most before they go into doubles
  using Total = double;
  static constexpr double kNone = 0;
  static constexpr float kRest = 0;
  struct Wide {
    Doubles d;
    LAMINA_INLINE Wide() : d{} {}
    LAMINA_INLINE void join(vf v) {
      const Doubles x = to_doubles(v);
      d.lo += x.lo;
      d.hi += x.hi;
    }
    LAMINA_INLINE void join(const Wide& other) {
      d.lo += other.d.lo;
      d.hi += other.d.hi;
    }
    LAMINA_INLINE double total() const { return sum_lanes(d.lo + d.hi); }
  };
  LAMINA_INLINE static vf step(vf a, vf x) { return a + x; }
  LAMINA_INLINE static double join(double a, double b) { return a + b; }
  /// to[j] += v[j]
  LAMINA_INLINE static void join_lanes(double* to, vf v) {
    const Doubles x = to_doubles(v);
    // Not `auto*`: deduction drops the alignment.
    vd_unaligned* lo = reinterpret_cast<vd_unaligned*>(to);
    vd_unaligned* hi = reinterpret_cast<vd_unaligned*>(to + kLanes / 2);
    *lo += x.lo;
    *hi += x.hi;
  }
};

/// Every value goes into doubles as it is: for sums that may cancel and whose error must not be that of their terms.
struct SummingExactly : Summing {
  static constexpr int kGroup = 1;
};

template <class Better>
struct Choosing {
  static constexpr int kGroup = 8;
  using Total = float;
  struct Wide {
    vf v;
    LAMINA_INLINE Wide() : v(broadcast(Better::kNone)) {}  // GCC compiles implicit ones for the baseline
    LAMINA_INLINE void join(vf x) { v = Better{}(v, x); }
    LAMINA_INLINE float total() const { return fold_lanes(v, Better{}); }
  };
  static constexpr float kNone = Better::kNone;
  static constexpr float kRest = Better::kNone;
  LAMINA_INLINE static vf step(vf a, vf x) { return Better{}(a, x); }
  LAMINA_INLINE static float join(float a, float b) { return Better{}(a, b); }
  LAMINA_INLINE static void join_lanes(float* to, vf v) { store(to, Better{}(load(to), v)); }
};
struct LargerOf : Larger {
  static constexpr float kNone = -__builtin_inff();
};
struct SmallerOf : Smaller {
  static constexpr float kNone = __builtin_inff();
};

// ---- along a run ----

/// Joins the K values f(i, m, vf* values) of each vector of n elements into wide[K]. Lanes from m on must be kRest.
template <class R, int K, class F>
LAMINA_INLINE void reduce_run(typename R::Wide* wide, std::int64_t n, F f) {
  constexpr int kUnroll = K == 1 ? 4 : 2;
  constexpr std::int64_t kStep = kUnroll * kLanes;
  std::int64_t i = 0;
  if constexpr (R::kGroup == 1) {
    typename R::Wide odd[K];  // two sums at a time: each waits for its last addition
    for (; n - i >= 2 * kLanes; i += 2 * kLanes) {
      vf v[K], w[K];
      f(i, std::int64_t{kLanes}, v);
      f(i + kLanes, std::int64_t{kLanes}, w);
      for (int k = 0; k < K; ++k) {
        wide[k].join(v[k]);
        odd[k].join(w[k]);
      }
    }
    for (; i < n; i += kLanes) {
      vf v[K];
      f(i, n - i < kLanes ? n - i : std::int64_t{kLanes}, v);
      for (int k = 0; k < K; ++k) wide[k].join(v[k]);
    }
    for (int k = 0; k < K; ++k) wide[k].join(odd[k]);
    return;
  }
  while (n - i >= kStep) {
    vf a[kUnroll][K];
    for (int u = 0; u < kUnroll; ++u) f(i + u * kLanes, std::int64_t{kLanes}, a[u]);
    i += kStep;
    const std::int64_t end = n - i < 7 * kStep ? i + (n - i) / kStep * kStep : i + 7 * kStep;
    for (; i < end; i += kStep) {
      for (int u = 0; u < kUnroll; ++u) {
        vf v[K];
        f(i + u * kLanes, std::int64_t{kLanes}, v);
        for (int k = 0; k < K; ++k) a[u][k] = R::step(a[u][k], v[k]);
      }
    }
    for (int k = 0; k < K; ++k) {
      if constexpr (kUnroll == 4) {
        wide[k].join(R::step(R::step(a[0][k], a[1][k]), R::step(a[2][k], a[3][k])));
      } else {
        wide[k].join(R::step(a[0][k], a[1][k]));
      }
    }
  }
  if (i == n) return;
  vf a[K];
  bool first = true;
  for (; i < n; i += kLanes) {
    vf v[K];
    if (i + kLanes <= n) {
      f(i, std::int64_t{kLanes}, v);
    } else {
      f(i, n - i, v);
    }
    for (int k = 0; k < K; ++k) a[k] = first ? v[k] : R::step(a[k], v[k]);
    first = false;
  }
  for (int k = 0; k < K; ++k) wide[k].join(a[k]);
}

// ---- across rows ----

/// Joins the K values f(row, j, m, vf* values) of `rows` rows of n columns into to[k][j]. The buffers are padded to
/// whole vectors.
template <class R, int K, class F>
LAMINA_INLINE void reduce_rows(typename R::Total* const* to, std::int64_t rows, std::int64_t n, F f) {
  std::int64_t row = 0;
  for (; R::kGroup > 1 && row + 8 <= rows; row += 8) {
    for_each_vector(
        n, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
          vf a[K], b[K], v[K];
          f(row, j, m, a);
          f(row + 1, j, m, b);
          for (int r = 2; r < 8; r += 2) {
            f(row + r, j, m, v);
            for (int k = 0; k < K; ++k) a[k] = R::step(a[k], v[k]);
            f(row + r + 1, j, m, v);
            for (int k = 0; k < K; ++k) b[k] = R::step(b[k], v[k]);
          }
          for (int k = 0; k < K; ++k) R::join_lanes(to[k] + j, R::step(a[k], b[k]));
        });
  }
  for (; row < rows; ++row) {
    for_each_vector(
        n, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
          vf v[K];
          f(row, j, m, v);
          for (int k = 0; k < K; ++k) R::join_lanes(to[k] + j, v[k]);
        });
  }
}

// ---- whole reductions of a dense tensor ----

/// Columns a block of reduce_rows works on, so that its totals stay in the first-level cache.
inline constexpr std::int64_t kColumnTile = 1024;
/// Narrower rows are reduced several at a time.
inline constexpr std::int64_t kNarrow = 2 * kLanes;

/// Reduces rows [lo, hi) of columns [0, cols) at x into to[0..cols).
template <class R, class T>
void reduce_tile(const T* x, const MergedDims& reduced, std::int64_t lo, std::int64_t hi, std::int64_t cols,
                 bool adjacent, typename R::Total* to) {
  typename R::Total totals[kColumnTile + kLanes];
  typename R::Total* const buffers[1] = {totals};
  const bool fold = adjacent && cols < kNarrow && hi - lo >= 2 * kLanes;
  const std::int64_t wide = fold ? cols * kLanes : cols;
  for (std::int64_t j = 0; j < wide + kLanes; ++j) totals[j] = R::kNone;
  if (fold) {
    // kLanes narrow rows make a wide one; its totals are folded at the end.
    const T* at = x + lo * cols;
    const std::int64_t rows = (hi - lo) / kLanes;
    reduce_rows<R, 1>(
        buffers, rows,
        wide, [&](std::int64_t row, std::int64_t j, std::int64_t, vf * v) __attribute__((always_inline)) {
          v[0] = Lanes<T>::load(at + row * wide + j);
        });
    for (std::int64_t j = cols; j < wide; ++j) totals[j % cols] = R::join(totals[j % cols], totals[j]);
    for (std::int64_t row = lo + rows * kLanes; row < hi; ++row) {
      for (std::int64_t j = 0; j < cols; ++j) totals[j] = R::join(totals[j], Lanes<T>::get(x + row * cols + j));
    }
  } else {
    const T* at[8];
    for (std::int64_t row = lo; row < hi; row += 8) {
      const std::int64_t rows = hi - row < 8 ? hi - row : 8;
      for (std::int64_t r = 0; r < rows; ++r) at[r] = x + reduced.offset(row + r);
      reduce_rows<R, 1>(
          buffers, rows,
          cols, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
            v[0] = load_part(at[r] + j, m, R::kRest);
          });
    }
  }
  for (std::int64_t j = 0; j < cols; ++j) to[j] = totals[j];
}

/// y = finish(reduction of x over `axes`). x is dense; finish takes a Total and gives a float.
template <class R, class T, class F>
void reduce(const Operand& x, std::uint32_t axes, const Operand& y, Executor& executor, MemoryPool& pool, F finish) {
  using Total = typename R::Total;
  const T* from = x.as<const T>();
  T* to = y.as<T>();
  const std::int64_t outputs = y.count();
  if (outputs == 0) return;
  if (x.count() == 0) {
    for (std::int64_t i = 0; i < outputs; ++i) Lanes<T>::put(to + i, finish(R::kNone));
    return;
  }
  const ReducePlan plan = reduce_plan(x.shape(), axes);
  // Each kept position is cut into segments (of what is reduced) and tiles (of columns).
  const std::int64_t cols = plan.inner_reduced ? 1 : plan.inner;
  const std::int64_t tile = plan.inner_reduced || cols < kColumnTile ? cols : kColumnTile;
  const std::int64_t tiles = ceil_div(cols, tile);
  const std::int64_t length = plan.inner_reduced ? plan.reduced.count * plan.inner : plan.reduced.count;
  const std::int64_t segment =
      plan.inner_reduced ? 2 * kReduceBlock : ceil_div(block_of(tile, 4 * kReduceBlock), 8) * 8;
  const std::int64_t segments = ceil_div(length, segment);
  const std::int64_t items = plan.kept.count * segments * tiles;
  const std::int64_t items_a_block = block_of((length < segment ? length : segment) * tile);
  const bool adjacent = plan.reduced.rank == 1 && plan.reduced.strides[0] == plan.inner;
  const Scratch scratch = Scratch::of_doubles(pool, segments > 1 ? outputs * segments : 0);
  Total* partial = reinterpret_cast<Total*>(scratch.doubles());
  auto item = [&](std::int64_t n) {
    const std::int64_t t = n % tiles;
    const std::int64_t s = n / tiles % segments;
    const std::int64_t o = n / tiles / segments;
    const T* at = from + plan.kept.offset(o);
    const std::int64_t lo = s * segment;
    const std::int64_t hi = length < lo + segment ? length : lo + segment;
    if (plan.inner_reduced) {
      typename R::Wide wide[1];
      for (std::int64_t i = lo; i < hi;) {
        const std::int64_t row = i / plan.inner, begin = i % plan.inner;
        const std::int64_t count = plan.inner - begin < hi - i ? plan.inner - begin : hi - i;
        const T* run = at + plan.reduced.offset(row) + begin;
        reduce_run<R, 1>(
            wide, count, [&](std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = load_part(run + j, m, R::kRest);
            });
        i += count;
      }
      const Total total = wide[0].total();
      if (segments > 1) {
        partial[o * segments + s] = total;
      } else {
        Lanes<T>::put(to + o, finish(total));
      }
      return;
    }
    const std::int64_t begin = t * tile;
    const std::int64_t count = cols - begin < tile ? cols - begin : tile;
    if (segments > 1) {
      reduce_tile<R, T>(at + begin, plan.reduced, lo, hi, count, adjacent && tiles == 1,
                        partial + (o * segments + s) * cols + begin);
    } else {
      Total totals[kColumnTile];
      reduce_tile<R, T>(at + begin, plan.reduced, lo, hi, count, adjacent && tiles == 1, totals);
      for (std::int64_t j = 0; j < count; ++j) Lanes<T>::put(to + o * cols + begin + j, finish(totals[j]));
    }
  };
  const bool short_rows = plan.inner_reduced && plan.reduced.count == 1 && plan.inner <= 16;
  run_blocks(executor, ceil_div(items, items_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * items_a_block < items ? (block + 1) * items_a_block : items;
    if (short_rows) {
      for (std::int64_t o = block * items_a_block; o < end; ++o) {
        Total total = R::kNone;
        for (std::int64_t j = 0; j < plan.inner; ++j) total = R::join(total, Lanes<T>::get(from + o * plan.inner + j));
        Lanes<T>::put(to + o, finish(total));
      }
      return;
    }
    for (std::int64_t n = block * items_a_block; n < end; ++n) item(n);
  });
  if (segments == 1) return;
  const std::int64_t outputs_a_block = block_of(segments);
  run_blocks(executor, ceil_div(outputs, outputs_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * outputs_a_block < outputs ? (block + 1) * outputs_a_block : outputs;
    for (std::int64_t i = block * outputs_a_block; i < end; ++i) {
      const Total* p = partial + i / cols * segments * cols + i % cols;
      Total total = p[0];
      for (std::int64_t s = 1; s < segments; ++s) total = R::join(total, p[s * cols]);
      Lanes<T>::put(to + i, finish(total));
    }
  });
}
