// Register tiles of the weight gradient: lanes of output channels, or of pixels where these are few.
// Included by vector.hpp (no include guard).

// A float takes at most kChain products before it is added to the unit's sum, a unit's sum at most kChain of those, and
// the sum of units kUnitChain of these: however long the whole is, its digits are lost to short chains only.
inline constexpr Size kChain = 64;
inline constexpr Size kUnitChain = 16;

/// sums[run][tap of the run][vector] += over rows and columns, x at the run's positions times the lanes of dy.
using WeightTile = void (*)(const float* x, const Size* runs, Size images, Size image, Size rows, Size columns,
                            Size pitch, const float* dy, float* sums);

template <int kRuns, int kTaps, int kVectors>
void weight_tile(const float* x, const Size* runs, Size images, Size image, Size rows, Size columns, Size pitch,
                 const float* dy, float* sums) {
  vf acc[kRuns][kTaps][kVectors] = {};
  alignas(64) float unit[kRuns * kTaps * kVectors * kLanes];
  store_zeros(unit, kRuns * kTaps * kVectors * kLanes);
  auto add_to = [&](float* to) __attribute__((always_inline)) {
    LAMINA_UNROLL
    for (int r = 0; r < kRuns; ++r) {
      LAMINA_UNROLL
      for (int k = 0; k < kTaps; ++k) {
        LAMINA_UNROLL
        for (int v = 0; v < kVectors; ++v) {
          float* place = to + ((r * kTaps + k) * kVectors + v) * kLanes;
          store(place, load(place) + acc[r][k][v]);
          acc[r][k][v] = vf{};
        }
      }
    }
  };
  Size chain = 0;
  for (Size m = 0; m < images; ++m) {
    for (Size i = 0; i < rows; ++i) {
      const float* at[kRuns];
      LAMINA_UNROLL
      for (int r = 0; r < kRuns; ++r) at[r] = x + m * image + i * pitch + runs[r];
      for (Size j = 0; j < columns;) {
        const Size end = least(columns, j + kChain);
        chain += end - j;
        if (chain > kChain) {
          add_to(unit);
          chain = end - j;
        }
        for (; j < end; ++j) {
          vf lanes[kVectors];
          LAMINA_UNROLL
          for (int v = 0; v < kVectors; ++v) lanes[v] = load(dy + v * kLanes);
          LAMINA_UNROLL
          for (int r = 0; r < kRuns; ++r) {
            LAMINA_UNROLL
            for (int k = 0; k < kTaps; ++k) {
              const vf pixel = broadcast(at[r][j + k]);
              LAMINA_UNROLL
              for (int v = 0; v < kVectors; ++v) acc[r][k][v] = fma(pixel, lanes[v], acc[r][k][v]);
            }
          }
          dy += kVectors * kLanes;
          LAMINA_BARRIER();
        }
      }
    }
  }
  add_to(unit);
  for (int s = 0; s < kRuns * kTaps * kVectors * kLanes; s += kLanes) store(sums + s, load(sums + s) + load(unit + s));
}

/// How many of `left` runs the next tile takes, and the tile.
struct WeightTileChoice {
  Size runs;
  WeightTile tile;
};
WeightTileChoice weight_tile_of(Size left, Size taps, Size vectors) {
#define LAMINA_TILE(r, k, v)  \
  if (left >= r) return {     \
      r, weight_tile<r, k, v> \
    }
#if LAMINA_LANES == 16
  if (taps == 3 && vectors == 2) {
    LAMINA_TILE(4, 3, 2);
    LAMINA_TILE(2, 3, 2);
    LAMINA_TILE(1, 3, 2);
  }
  if (taps == 3) {
    LAMINA_TILE(9, 3, 1);
    LAMINA_TILE(3, 3, 1);
    LAMINA_TILE(1, 3, 1);
  }
  if (taps == 2 && vectors == 2) {
    LAMINA_TILE(6, 2, 2);
    LAMINA_TILE(2, 2, 2);
    LAMINA_TILE(1, 2, 2);
  }
  if (taps == 2) {
    LAMINA_TILE(8, 2, 1);
    LAMINA_TILE(3, 2, 1);
    LAMINA_TILE(1, 2, 1);
  }
  if (vectors == 2) {
    LAMINA_TILE(8, 1, 2);
    LAMINA_TILE(4, 1, 2);
    LAMINA_TILE(1, 1, 2);
  }
  LAMINA_TILE(8, 1, 1);
  LAMINA_TILE(4, 1, 1);
#else
  if (taps == 3 && vectors == 2) {
    LAMINA_TILE(2, 3, 2);
    LAMINA_TILE(1, 3, 2);
  }
  if (taps == 3) {
    LAMINA_TILE(3, 3, 1);
    LAMINA_TILE(1, 3, 1);
  }
  if (taps == 2 && vectors == 2) {
    LAMINA_TILE(3, 2, 2);
    LAMINA_TILE(1, 2, 2);
  }
  if (taps == 2) {
    LAMINA_TILE(4, 2, 1);
    LAMINA_TILE(1, 2, 1);
  }
  if (vectors == 2) {
    LAMINA_TILE(6, 1, 2);
    LAMINA_TILE(3, 1, 2);
    LAMINA_TILE(1, 1, 2);
  }
  LAMINA_TILE(8, 1, 1);
  LAMINA_TILE(4, 1, 1);
#endif
#undef LAMINA_TILE
  return {1, weight_tile<1, 1, 1>};
}

/// For few output channels: sums[tap] += x at the tap times dy, over lanes of pixels. `last` masks a row's last vector.
template <int kTaps>
void weight_lanes(const float* x, const Size* taps, Size rows, Size columns, Size pitch, const float* dy, float* sums) {
  vf acc[kTaps] = {};
  vf unit[kTaps] = {};
  const vi mask = first_lanes(columns % kLanes);
  Size chain = 0;
  for (Size i = 0; i < rows; ++i, x += pitch, dy += columns) {
    for (Size j = 0; j < columns;) {
      const Size end = least(columns, j + kChain * kLanes), vectors = div_up(end - j, kLanes);
      chain += vectors;
      if (chain > kChain) {
        LAMINA_UNROLL
        for (int t = 0; t < kTaps; ++t) {
          unit[t] += acc[t];
          acc[t] = vf{};
        }
        chain = vectors;
      }
      for (; j + kLanes <= end; j += kLanes) {
        const vf d = load(dy + j);
        LAMINA_UNROLL
        for (int t = 0; t < kTaps; ++t) acc[t] = fma(load(x + taps[t] + j), d, acc[t]);
      }
      if (j < end) {
        const vf d = load_first(dy + j, end - j);
        LAMINA_UNROLL
        for (int t = 0; t < kTaps; ++t) acc[t] = fma(float_of(bits_of(load(x + taps[t] + j)) & mask), d, acc[t]);
        j = end;
      }
    }
  }
  LAMINA_UNROLL
  for (int t = 0; t < kTaps; ++t) store(sums + t * kLanes, load(sums + t * kLanes) + (unit[t] + acc[t]));
}
