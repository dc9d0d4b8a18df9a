#include "lamina/kernels/cpu/simd/reduce.hpp"

template <class T>
void reduce_max(const Launch<Max::Attrs>& launch) {
  reduce<Choosing<LargerOf>, T>(launch.in[0], launch.attrs.axes, launch.out[0], launch.executor, launch.pool,
                                [](float total) { return total; });
}
template <class T>
void reduce_min(const Launch<Min::Attrs>& launch) {
  reduce<Choosing<SmallerOf>, T>(launch.in[0], launch.attrs.axes, launch.out[0], launch.executor, launch.pool,
                                 [](float total) { return total; });
}

LAMINA_INLINE vi equal_or_nan(vf x, vf y) { return (x == y) | ((x != x) & (y != y)); }

/// Index of the first of n elements that equals y; -1 if none does.
template <class T>
LAMINA_INLINE std::int64_t find_first(const T* x, std::int64_t n, float y) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    if (any(equal_or_nan(Lanes<T>::load(x + i), broadcast(y)))) break;
  }
  for (; i < n; ++i) {
    const float v = Lanes<T>::get(x + i);
    if (v == y || (v != v && y != y)) return i;
  }
  return -1;
}

template <class T>
void extremum_grad(const Launch<ExtremumGrad::Attrs>& launch) {
  if (launch.out[0].count() == 0) return;
  const T* dy = launch.in[0].as<const T>();
  const T* x = launch.in[1].as<const T>();
  const T* y = launch.in[2].as<const T>();
  T* dx = launch.out[0].as<T>();
  const ReducePlan plan = reduce_plan(launch.in[1].shape(), launch.attrs.axes);
  const std::int64_t cols = plan.inner_reduced ? 1 : plan.inner;
  const std::int64_t tile = cols < kColumnTile ? cols : kColumnTile;
  const std::int64_t tiles = ceil_div(cols, tile);
  const std::int64_t items = plan.kept.count * tiles;
  const std::int64_t items_a_block = block_of(plan.reduced.count * (plan.inner_reduced ? plan.inner : tile));
  auto item = [&](std::int64_t n) {
    const std::int64_t o = n / tiles;
    const std::int64_t base = plan.kept.offset(o);
    if (plan.inner_reduced) {
      bool found = false;
      for (std::int64_t row = 0; row < plan.reduced.count; ++row) {
        const std::int64_t at = base + plan.reduced.offset(row);
        for_each_vector(plan.inner, [&](std::int64_t i, std::int64_t m) { store_part(dx + at + i, vf{}, m); });
        const std::int64_t i = found ? -1 : find_first(x + at, plan.inner, Lanes<T>::get(y + o));
        if (i >= 0) {
          dx[at + i] = dy[o];
          found = true;
        }
      }
      return;
    }
    const std::int64_t begin = n % tiles * tile;
    const std::int64_t count = cols - begin < tile ? cols - begin : tile;
    std::int32_t found[kColumnTile + kLanes] = {};
    for (std::int64_t row = 0; row < plan.reduced.count; ++row) {
      const std::int64_t at = base + begin + plan.reduced.offset(row);
      for_each_vector(
          count, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
            vi_unaligned* seen = reinterpret_cast<vi_unaligned*>(found + j);
            const std::int64_t out = o * cols + begin + j;
            const vi here = equal_or_nan(load_part(x + at + j, m), load_part(y + out, m)) & ~*seen;
            *seen |= here;
            store_part(dx + at + j, here ? load_part(dy + out, m) : vf{}, m);
          });
    }
  };
  run_blocks(launch.executor, ceil_div(items, items_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * items_a_block < items ? (block + 1) * items_a_block : items;
    for (std::int64_t n = block * items_a_block; n < end; ++n) item(n);
  });
}
