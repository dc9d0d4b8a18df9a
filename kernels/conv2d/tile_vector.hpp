// Register tiles of the forward pass and the input gradient, of the two kinds that vector.hpp names.
// Included by vector.hpp (no include guard).

/// sums (+)= the products of `channels` channels and all taps. Weights are packed in the order they are read.
using Tile = void (*)(const float* const* x, const std::int32_t* taps, Size tap_count, Size channels, Size channel,
                      const float* w, float* sums, bool add);

/// kVectors vectors of pixels, each at its own address, x kOutputs output channels; sums[vector][output].
template <int kVectors, int kOutputs>
void pixel_tile(const float* const* x, const std::int32_t* taps, Size tap_count, Size channels, Size channel,
                const float* w, float* sums, bool add) {
  vf acc[kVectors][kOutputs] = {};
  const float* at[kVectors];
  for (int v = 0; v < kVectors; ++v) at[v] = x[v];
  for (Size c = 0; c < channels; ++c) {
    for (Size t = 0; t < tap_count; ++t) {
      const Size offset = taps[t];
      vf pixels[kVectors];
      LAMINA_UNROLL
      for (int v = 0; v < kVectors; ++v) pixels[v] = load(at[v] + offset);
      LAMINA_UNROLL
      for (int o = 0; o < kOutputs; ++o) {
        const vf weight = broadcast(w[o]);
        LAMINA_UNROLL
        for (int v = 0; v < kVectors; ++v) acc[v][o] = fma(pixels[v], weight, acc[v][o]);
      }
      w += kOutputs;
    }
    LAMINA_UNROLL
    for (int v = 0; v < kVectors; ++v) at[v] += channel;
  }
  LAMINA_UNROLL
  for (int v = 0; v < kVectors; ++v) {
    LAMINA_UNROLL
    for (int o = 0; o < kOutputs; ++o) {
      float* to = sums + (v * kOutputs + o) * kLanes;
      store(to, add ? load(to) + acc[v][o] : acc[v][o]);
    }
  }
}

/// kCells times kPixels neighbouring pixels x kVectors vectors of output channels; sums[cell][pixel][vector].
template <int kCells, int kPixels, int kVectors>
void channel_tile(const float* const* x, const std::int32_t* taps, Size tap_count, Size channels, Size channel,
                  const float* w, float* sums, bool add) {
  vf acc[kCells * kPixels][kVectors] = {};
  const float* at[kCells];
  for (int v = 0; v < kCells; ++v) at[v] = x[v];
  for (Size c = 0; c < channels; ++c) {
    for (Size t = 0; t < tap_count; ++t) {
      const Size offset = taps[t];
      vf weight[kVectors];
      LAMINA_UNROLL
      for (int v = 0; v < kVectors; ++v) weight[v] = load(w + v * kLanes);
      LAMINA_UNROLL
      for (int p = 0; p < kCells * kPixels; ++p) {
        const vf pixel = broadcast(at[p / kPixels][offset + p % kPixels]);
        LAMINA_UNROLL
        for (int v = 0; v < kVectors; ++v) acc[p][v] = fma(pixel, weight[v], acc[p][v]);
      }
      w += kVectors * kLanes;
    }
    for (int v = 0; v < kCells; ++v) at[v] += channel;
  }
  LAMINA_UNROLL
  for (int p = 0; p < kCells * kPixels; ++p) {
    LAMINA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* to = sums + (p * kVectors + v) * kLanes;
      store(to, add ? load(to) + acc[p][v] : acc[p][v]);
    }
  }
}

template <int kOutputs>
Tile pixel_tile_of(Size vectors) {
  if constexpr (kOutputs == 1) {
    if (vectors == 8) return pixel_tile<8, 1>;
  }
  if constexpr (kOutputs < 8) {
    if (vectors == 4) return pixel_tile<4, kOutputs>;
  }
  return vectors == 3 ? pixel_tile<3, kOutputs> : vectors == 2 ? pixel_tile<2, kOutputs> : pixel_tile<1, kOutputs>;
}
Tile pixel_tile_of(Size vectors, Size outputs) {
#if LAMINA_LANES == 16
  if (outputs == 8) return pixel_tile_of<8>(vectors);
#endif
  return outputs == 4   ? pixel_tile_of<4>(vectors)
         : outputs == 2 ? pixel_tile_of<2>(vectors)
                        : pixel_tile_of<1>(vectors);
}
template <int kPixels>
Tile channel_tile_of(Size cells, Size vectors) {
  if constexpr (kPixels == 7) {
    if (cells == 2) return vectors == 2 ? channel_tile<2, kPixels, 2> : channel_tile<2, kPixels, 1>;
  }
  if constexpr (kPixels <= 4) {
    if (vectors == 4) return channel_tile<1, kPixels, 4>;
    if (vectors == 3) return channel_tile<1, kPixels, 3>;
  }
  return vectors == 2 ? channel_tile<1, kPixels, 2> : channel_tile<1, kPixels, 1>;
}

// The widths of tiles: pixels of the channel kind, best first; outputs and vectors of the pixel kind.
#if LAMINA_LANES == 16
inline constexpr int kPixelChoices[] = {14, 8, 7, 4, 1};
inline constexpr Size kMaxOutputs = 8;
#elif LAMINA_LANES == 8
inline constexpr int kPixelChoices[] = {6, 5, 4, 1};
inline constexpr Size kMaxOutputs = 4;
#else
inline constexpr int kPixelChoices[] = {4, 1};
inline constexpr Size kMaxOutputs = 4;
#endif
inline constexpr Size kMaxPixels = 14;
inline constexpr Size kMaxSums = 32 * kLanes;

Tile channel_tile_of(Size pixels, Size cells, Size vectors) {
#if LAMINA_LANES == 16
  if (pixels == 14) return channel_tile_of<14>(cells, vectors);
  if (pixels == 8) return channel_tile_of<8>(cells, vectors);
  if (pixels == 7) return channel_tile_of<7>(cells, vectors);
#elif LAMINA_LANES == 8
  if (pixels == 6) return channel_tile_of<6>(cells, vectors);
  if (pixels == 5) return channel_tile_of<5>(cells, vectors);
#endif
  return pixels == 4 ? channel_tile_of<4>(cells, vectors) : channel_tile_of<1>(cells, vectors);
}
LAMINA_INLINE Size max_channel_vectors(Size pixels) {
  return pixels == 1 ? 4 : pixels == 4 ? (kLanes == 16 ? 4 : 3) : 2;
}
LAMINA_INLINE Size max_pixel_vectors(Size outputs) {
  return outputs == 8 ? 3 : outputs == 4 ? (kLanes == 16 ? 4 : 3) : outputs == 2 ? 4 : 8;
}
/// `largest`, or what of 4, 2, 1 is not above `left`.
LAMINA_INLINE Size part_of(Size left, Size largest) {
  if (left >= largest) return largest;
  return left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
