// Register tiles of the weight gradient: lanes of output channels, or of pixels where these are few.
// Included by vector.hpp (no include guard).

/// sums[run][tap of the run][vector] += over rows and columns, x at the run's positions times the lanes of dy.
using WeightTile = void (*)(const float* x, const Size* runs, Size images, Size image, Size rows, Size columns,
                            Size pitch, const float* dy, float* sums);

template <int kRuns, int kTaps, int kVectors>
void weight_tile(const float* x, const Size* runs, Size images, Size image, Size rows, Size columns, Size pitch,
                 const float* dy, float* sums) {
  vf acc[kRuns][kTaps][kVectors] = {};
  for (Size m = 0; m < images; ++m) {
    for (Size i = 0; i < rows; ++i) {
      const float* at[kRuns];
      LAMINA_UNROLL
      for (int r = 0; r < kRuns; ++r) at[r] = x + m * image + i * pitch + runs[r];
      for (Size j = 0; j < columns; ++j) {
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
  LAMINA_UNROLL
  for (int r = 0; r < kRuns; ++r) {
    LAMINA_UNROLL
    for (int k = 0; k < kTaps; ++k) {
      LAMINA_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        float* to = sums + ((r * kTaps + k) * kVectors + v) * kLanes;
        store(to, load(to) + acc[r][k][v]);
      }
    }
  }
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
  const Size whole = columns / kLanes * kLanes, tail = columns - whole;
  const vi mask = first_lanes(tail);
  for (Size i = 0; i < rows; ++i, x += pitch, dy += columns) {
    for (Size j = 0; j < whole; j += kLanes) {
      const vf d = load(dy + j);
      LAMINA_UNROLL
      for (int t = 0; t < kTaps; ++t) acc[t] = fma(load(x + taps[t] + j), d, acc[t]);
    }
    if (tail > 0) {
      const vf d = load_first(dy + whole, tail);
      LAMINA_UNROLL
      for (int t = 0; t < kTaps; ++t) {
        acc[t] = fma(float_of(bits_of(load(x + taps[t] + whole)) & mask), d, acc[t]);
      }
    }
  }
  LAMINA_UNROLL
  for (int t = 0; t < kTaps; ++t) store(sums + t * kLanes, load(sums + t * kLanes) + acc[t]);
}
