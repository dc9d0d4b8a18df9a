// Direct convolution. A unit of work copies the part of the source it reads, padded and with strides undone (see
// TapAxis), and then walks it with register tiles that hold their sums over all channels and taps. There are two kinds
// of tile: lanes of output pixels (few channels, long rows), and lanes of output channels (many channels, any rows).
#include "lamina/kernels/cpu/simd/gemm.hpp"

using Size = std::int64_t;

/// p + n, where p may be null: an empty image has no address.
LAMINA_INLINE const float* past(const float* p, Size n) { return p == nullptr ? p : p + n; }

LAMINA_INLINE Size least(Size a, Size b) { return a < b ? a : b; }
LAMINA_INLINE Size most(Size a, Size b) { return a > b ? a : b; }
LAMINA_INLINE Size div_up(Size a, Size b) { return (a + b - 1) / b; }
LAMINA_INLINE Size round_up(Size a, Size b) { return div_up(a, b) * b; }

inline constexpr Size kCopyFloats = 98304;  // of a unit's copy of the source, where one row allows it
inline constexpr Size kSlack = 8 * kLanes;  // readable after a copy: lanes beyond a row's end are computed, not stored
inline constexpr Size kJobs = 16;           // independent parts to split work into, where it can be

// Keeps the compiler from making library calls of short loops and from carrying loads from one iteration to the next in
// registers that the sums need.
#define LAMINA_BARRIER() __asm__ volatile("" : : : "memory")

LAMINA_INLINE void store_zeros(float* to, Size count) {
  for (Size q = 0; q < count; q += kLanes) {
    store(to + q, vf{});
    LAMINA_BARRIER();
  }
}

LAMINA_INLINE vf even_elements(vf a, vf b) {
#if LAMINA_LANES == 16
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif LAMINA_LANES == 8
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

// ---- the copy of the source ----

/// Element (c, row class, column class, image, row, column) of a copy; the last two are output positions plus offsets.
struct CopyLayout {
  Size images, rows, pitch;
  Size plane;    ///< of one pair of classes
  Size channel;  ///< floats from one channel to the next
  Size floats;   ///< of the whole, without slack

  CopyLayout(const TapAxis& row_axis, const TapAxis& column_axis, Size channels, Size together, Size band, Size width)
      : images(together),
        rows(band + row_axis.extra),
        pitch(width + column_axis.extra),
        plane(images * rows * pitch),
        channel(row_axis.classes * column_axis.classes * plane) {
    if (channel % 1024 < 64) channel += 64;  // channels a page apart would share a cache set
    floats = channels * channel;
  }
};

// Loads of the lanes [lo, hi) only; the others are 0 and their memory is not touched.
#if LAMINA_REGISTER_LANES == 16
typedef __mmask16 LaneMask;
LAMINA_INLINE LaneMask lanes_between(Size lo, Size hi) {
  lo = least(most(lo, 0), kLanes);
  hi = least(most(hi, lo), kLanes);
  return static_cast<__mmask16>(((1u << hi) - 1u) & ~((1u << lo) - 1u));
}
LAMINA_INLINE vf load_masked(const float* p, LaneMask mask) { return _mm512_maskz_loadu_ps(mask, p); }
#else
typedef vi LaneMask;
LAMINA_INLINE LaneMask lanes_between(Size lo, Size hi) {
  lo = least(most(lo, 0), kLanes);
  hi = least(most(hi, lo), kLanes);
  return first_lanes(hi) & ~first_lanes(lo);
}
LAMINA_INLINE vf load_masked(const float* p, LaneMask mask) {
#if LAMINA_REGISTER_LANES == 8
  const IntRegisters m{mask};
  Registers v;
  for (int i = 0; i < kRegisters; ++i) v.r[i] = _mm256_maskload_ps(p + 8 * i, m.r[i]);
  return v.v;
#else
  vf v{};
  for (int i = 0; i < kLanes; ++i) {
    if (mask[i] != 0) v[i] = p[i];
  }
  return v;
#endif
}
#endif

/// Rows of up to kVectors vectors: positions [lo, hi) from `from` on, kStep (1 or 2) apart; zeros elsewhere. Rows of
/// the source outside [0, height) are zeros; `y` is the first, the next ones `step` further. Writes whole vectors.
template <int kVectors, int kStep>
LAMINA_INLINE void fill_short_rows(float* to, Size pitch, Size rows, Size y, Size step, Size height, const float* from,
                                   Size line, Size lo, Size hi) {
  LaneMask masks[kVectors * kStep];
  for (int v = 0; v < kVectors * kStep; ++v) {
    masks[v] = lanes_between(lo * kStep - v * kLanes, (hi - 1) * kStep + 1 - v * kLanes);
  }
  for (Size r = 0; r < rows; ++r, y += step, to += pitch) {
    const bool inside = y >= 0 && y < height;
    const float* source = past(from, y * line);
    LAMINA_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      vf x{};
      if (inside) {
        if constexpr (kStep == 1) {
          x = load_masked(source + v * kLanes, masks[v]);
        } else {
          x = even_elements(load_masked(source + 2 * v * kLanes, masks[2 * v]),
                            load_masked(source + (2 * v + 1) * kLanes, masks[2 * v + 1]));
        }
      }
      store(to + v * kLanes, x);
    }
  }
}

/// `count` elements at `from`, `step` apart, as positions [lo, hi) of a row of `count` floats; zeros elsewhere. Writes
/// up to kLanes - 1 floats more. `end` bounds what may be read.
LAMINA_INLINE void fill_row(float* to, Size count, const float* from, Size lo, Size hi, Size step) {
  store_zeros(to, lo);
  Size q = lo;
  if (step == 1) {
    for (; q + kLanes <= hi; q += kLanes, from += kLanes) {
      store(to + q, load(from));
      LAMINA_BARRIER();
    }
    if (q < hi) {
      store(to + q, load_first(from, hi - q));
      q += kLanes;
    }
  } else {
    if (step == 2) {
      for (; q < hi; q += kLanes, from += 2 * kLanes) {
        const Size there = least(2 * (hi - q) - 1, 2 * kLanes);
        store(to + q, there == 2 * kLanes ? even_elements(load(from), load(from + kLanes))
                                          : even_elements(load_first(from, least(there, kLanes)),
                                                          load_first(from + kLanes, most(0, there - kLanes))));
      }
    } else {
      for (; q < hi; ++q, from += step) to[q] = *from;
    }
  }
  store_zeros(to + q, count - q);
}

/// As fill_row, for `rows` rows that lie behind each other as those of the source do: `y` is the first, of `height`.
LAMINA_INLINE void fill_rows(float* to, Size rows, Size y, Size height, const float* source, Size count, Size lo,
                             Size hi) {
  const Size above = most(0, least(rows, -y)), below = most(above, least(rows, height - y));
  store_zeros(to, above * count);
  if (below > above) {
    float* first = to + above * count;
    const float* from = past(source, (y + above) * count);
    store_zeros(first, lo);
    fill_row(first + lo, (below - above) * count - lo, from + lo, 0, (below - above) * count - lo - (count - hi), 1);
    for (float* row = first; row < first + (below - above) * count; row += count) {
      for (Size q = 0; q < lo; ++q) row[q] = 0;
      for (Size q = hi; q < count; ++q) row[q] = 0;
    }
  }
  store_zeros(to + below * count, (rows - below) * count);
}

/// Copies `channels` of `images` images for the outputs from (i0, j0) on: `band` rows.
void fill_copy(const TapAxis& rows, const TapAxis& columns, const CopyLayout& layout, const float* in,
               Size image_stride, Size images, Size channels, Size i0, Size band, Size j0, float* copy) {
  const Size plane = rows.extent * columns.extent;
  const bool whole_rows = columns.step == 1 && rows.step == 1 && layout.pitch == columns.extent;
  for (Size c = 0; c < channels; ++c) {
    for (int rc = 0; rc < rows.classes; ++rc) {
      for (int cc = 0; cc < columns.classes; ++cc) {
        float* to = copy + c * layout.channel + (rc * columns.classes + cc) * layout.plane;
        const Size first = columns.start[cc] + j0 * columns.step;
        // Positions lo <= q < hi are inside the source.
        const Size lo = first >= 0 ? 0 : least(layout.pitch, div_up(-first, columns.step));
        const Size hi =
            first >= columns.extent ? lo : most(lo, least(layout.pitch, div_up(columns.extent - first, columns.step)));
        for (Size m = 0; m < images; ++m) {
          const float* source = in + m * image_stride + c * plane;
          float* row = to + m * layout.rows * layout.pitch;
          Size y = rows.start[rc] + i0 * rows.step;
          if (columns.step <= 2 && layout.pitch <= 3 * kLanes && hi > lo && (!whole_rows || layout.pitch < kLanes)) {
            const Size vectors = div_up(layout.pitch, kLanes), count = band + rows.extra;
            auto fill = [&]<int kVectors>() {
              if (columns.step == 1) {
                fill_short_rows<kVectors, 1>(row, layout.pitch, count, y, rows.step, rows.extent, past(source, first),
                                             columns.extent, lo, hi);
              } else {
                fill_short_rows<kVectors, 2>(row, layout.pitch, count, y, rows.step, rows.extent, past(source, first),
                                             columns.extent, lo, hi);
              }
            };
            if (vectors == 1) {
              fill.template operator()<1>();
            } else if (vectors == 2) {
              fill.template operator()<2>();
            } else {
              fill.template operator()<3>();
            }
            continue;
          }
          if (whole_rows && hi > lo) {
            fill_rows(row, band + rows.extra, y, rows.extent, past(source, first), columns.extent, lo, hi);
            continue;
          }
          for (Size r = 0; r < band + rows.extra; ++r, y += rows.step, row += layout.pitch) {
            if (y < 0 || y >= rows.extent) {
              store_zeros(row, layout.pitch);
            } else {
              const float* line = past(source, y * columns.extent);
              fill_row(row, layout.pitch, past(line, first + lo * columns.step), lo, hi, columns.step);
            }
          }
        }
      }
    }
  }
  store_zeros(copy + layout.floats, kSlack);
}

LAMINA_INLINE Size tap_offset(const TapAxis& rows, const TapAxis& columns, const CopyLayout& layout, int p, int q) {
  return (rows.tap_class[p] * columns.classes + columns.tap_class[q]) * layout.plane + rows.offset[p] * layout.pitch +
         columns.offset[q];
}

// ---- register tiles ----

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

// ---- forward and input gradient ----

/// Output channels that one tile serves.
struct OutputBlock {
  Size first, count;
  Size size;  ///< outputs, or vectors of outputs
};

/// Pixels that one tile, or one vector of it, serves.
struct Cell {
  Size at;     ///< in the copy
  Size out;    ///< first pixel: offset in a plane of outputs, or number in the table of offsets
  Size valid;  ///< pixels
};

/// Where a phase's taps and packed weights are.
struct PhaseTable {
  Size taps, depth;
  Size offsets, weights;
};

inline constexpr Size kChunk = 128;           // products of a sum made in registers before the sums are added up
inline constexpr Size kGroupSums = 4096;      // floats of sums worked on together
inline constexpr Size kNearWeights = 131072;  // floats of weights that stay in the cache while pixels pass
inline constexpr Size kPhaseFloats = 131072;

struct TapConvPlan {
  const TapConv& c;
  TapAxis rows, columns;
  bool channel_lanes = false;
  bool phased = false;  ///< outputs go to planes of phases first, and are interleaved from there
  Size pixels = 0;      ///< of a cell
  Size together = 1, band = 1, width = 1;
  enum class Run { row, image, all } run = Run::row;  ///< how far neighbouring positions of the copy are pixels
  bool scattered = false;                             ///< pixels of a run are not neighbours in the output
  Size plane = 0, line = 0;                           ///< of the outputs: elements from one to the next

  explicit TapConvPlan(const TapConv& conv)
      : c(conv), rows(conv.rows), columns(conv.columns), phased(conv.phase_count > 1) {
    const Size height = rows.size, length = columns.size, taps = Size{rows.taps} * columns.taps;
    const Size depth = c.channels * taps;
    choose_lanes(height, length, depth);
    if (!phased) {
      // Which axes are copied once a tap, so that runs of pixels are longer.
      bool copy_columns = taps == 1, copy_rows = taps == 1;
      if (channel_lanes) {
        if (length < 4) copy_columns = copy_rows = true;
      } else if (length % kLanes != 0 && c.outputs > 4) {
        copy_columns = true;
        if (height * length < 2 * kLanes) copy_rows = true;
      }
      if (copy_columns) columns = c.column_copies;
      if (copy_rows) rows = c.row_copies;
    }
    choose_unit(height, length, depth);
    if (columns.extra == 0 && width == length) {
      run = rows.extra == 0 && band == height && together > 1 && height * length < 4 * kLanes ? Run::all : Run::image;
    }
    scattered = run == Run::all;
    pixels = channel_lanes ? choose_pixels() : kLanes;
    plane = phased ? c.phase_count * band * width : c.height * c.width;
    line = phased ? width : c.width;
  }

 private:
  void choose_lanes(Size height, Size length, Size depth) {
    const bool rows_apart = phased || c.outputs <= 4 || length % kLanes == 0;
    const Size used = rows_apart ? length : height * length;
    const Size percent = 100 * used / round_up(used, kLanes);  // of the lanes of pixels that would be in use
    const bool deep = kLanes == 16 && depth >= 250 && length % kLanes != 0;
    const Size enough = kLanes == 16 ? 80 : 90;
    channel_lanes = (c.outputs >= 2 * kLanes && (deep || percent < enough)) || (c.outputs >= kLanes && percent < 40);
  }

  Size floats_of(Size images, Size height, Size length) const {
    return CopyLayout(rows, columns, c.channels, images, height, length).floats;
  }
  void choose_unit(Size height, Size length, Size depth) {
    band = height;
    width = length;
    const Size phase_row = phased ? c.outputs * c.phase_count * length : 0;
    if (floats_of(1, height, length) > kCopyFloats || height * phase_row > kPhaseFloats) {
      const Size row = most(1, c.channels * rows.classes * columns.classes * (length + columns.extra));
      band = least(height, most(1, kCopyFloats / row - rows.extra));
      if (phased) band = most(1, least(band, kPhaseFloats / phase_row));
      band = div_up(height, div_up(height, band));
      if (floats_of(1, 1, length) > 4 * kCopyFloats && length > 64) width = 64;
      return;
    }
    // Small images together, so that weights are read from the cache more than once, and tiles are full.
    const Size wanted = c.outputs * depth > 16384 || height * length < 4 * kLanes ? 256 : 1;
    together = least(c.images, div_up(wanted, height * length));
    const Size limit = c.outputs * depth > 262144 ? 3 * kCopyFloats : kCopyFloats;
    together = most(1, least(together, limit / most(1, floats_of(1, height, length))));
    if (phased) together = most(1, least(together, kPhaseFloats / (height * phase_row)));
  }
  Size choose_pixels() const {
    const Size length = run == Run::row ? width : run == Run::image ? band * width : together * band * width;
    Size best = 1, cost = 1000 * length;
    for (const Size choice : kPixelChoices) {
      const Size price = div_up(length, choice) * choice * (choice == 1 ? 300 : choice == 4 ? 105 : 100);
      if (price < cost) {
        cost = price;
        best = choice;
      }
    }
    return best;
  }
};

/// The packed weights of one block: [channel][tap][output].
void pack_weights(const TapConvPlan& plan, const TapPhase& phase, const float* weight, const OutputBlock& block,
                  float* to) {
  const TapConv& c = plan.c;
  const Size size = plan.channel_lanes ? block.size * kLanes : block.size;
  const Size taps = Size{phase.rows.taps} * phase.columns.taps;
  const float* from = weight + block.first * c.weight_output;
  if (plan.channel_lanes && taps == least(c.weight_output, c.weight_channel)) {  // all taps of the kernel
    auto pack = [&]<int kVectors>() {
      if (c.weight_channel == taps) {
        pack_panel<kVectors * kLanes>(to, from, c.weight_output, 1, block.count, c.channels * taps);
        return;
      }
      for (Size ch = 0; ch < c.channels; ++ch) {
        pack_panel<kVectors * kLanes>(to + ch * taps * size, from + ch * c.weight_channel, c.weight_output, 1,
                                      block.count, taps);
      }
    };
    if (block.size == 1) return pack.template operator()<1>();
    if (block.size == 2) return pack.template operator()<2>();
    if (block.size == 3) return pack.template operator()<3>();
    return pack.template operator()<4>();
  }
  for (Size ch = 0; ch < c.channels; ++ch) {
    for (Size o = 0; o < size; ++o) {
      const float* source = from + o * c.weight_output + ch * c.weight_channel;
      float* at = to + ch * taps * size + o;
      for (int p = 0; p < phase.rows.taps; ++p) {
        for (int q = 0; q < phase.columns.taps; ++q, at += size) {
          *at = o < block.count ? source[phase.rows.index[p] * c.weight_row + phase.columns.index[q]] : 0.0f;
        }
      }
    }
  }
}

/// Fills `cells` and, where pixels are scattered, `offsets`; returns the number of cells.
Size make_cells(const TapConvPlan& plan, const CopyLayout& layout, Size images, Size band, Size width, Size image_out,
                Cell* cells, Size* offsets) {
  using Run = TapConvPlan::Run;
  const Size runs = plan.run == Run::row ? images * band : plan.run == Run::image ? images : 1;
  const Size length = images * band * width / runs;
  Size count = 0;
  for (Size r = 0; r < runs; ++r) {
    Size at = 0, out = 0;
    if (plan.run == Run::row) {
      const Size m = r / band, i = r % band;
      at = (m * layout.rows + i) * layout.pitch;
      out = m * image_out + i * plan.line;
    } else if (plan.run == Run::image) {
      at = r * layout.rows * layout.pitch;
      out = r * image_out;
    }
    for (Size q = 0; q < length; q += plan.pixels) {
      // The last tile of channel lanes moves back rather than compute pixels that are not there.
      const Size from =
          plan.channel_lanes && q + plan.pixels > length && length > plan.pixels ? length - plan.pixels : q;
      cells[count++] = {at + from, out + from, least(plan.pixels, length - from)};
    }
  }
  if (plan.scattered) {
    Size n = 0;
    for (Size m = 0; m < images; ++m) {
      for (Size i = 0; i < band; ++i) {
        for (Size j = 0; j < width; ++j) offsets[n++] = m * image_out + i * plan.line + j;
      }
    }
  }
  return count;
}

LAMINA_INLINE void put_pixels(float* out, const Cell& cell, const Size* offsets, bool scattered, vf v) {
  if (scattered) {
    for (Size l = 0; l < cell.valid; ++l) out[offsets[cell.out + l]] = v[l];
  } else if (cell.valid == kLanes) {
    store(out + cell.out, v);
  } else {
    store_first(out + cell.out, v, cell.valid);
  }
}

/// Stores the sums of `vectors` cells. `out` is the plane of output channel 0.
void put_tile(const TapConvPlan& plan, const OutputBlock& block, const Cell* cells, Size vectors, const Size* offsets,
              const float* sums, const float* bias, float* out) {
  if (!plan.channel_lanes) {
    for (Size o = 0; o < block.count; ++o) {
      const vf shift = broadcast(bias != nullptr ? bias[block.first + o] : 0.0f);
      float* to = out + (block.first + o) * plan.plane;
      for (Size v = 0; v < vectors; ++v) {
        put_pixels(to, cells[v], offsets, plan.scattered, load(sums + (v * block.size + o) * kLanes) + shift);
      }
    }
    return;
  }
  for (Size n = 0; n < vectors; ++n) {
    // Two cells of one vector's worth of neighbouring pixels are stored together.
    const bool pair = !plan.scattered && 2 * plan.pixels <= kLanes && n + 1 < vectors &&
                      cells[n].valid == plan.pixels && cells[n + 1].out == cells[n].out + plan.pixels;
    const Size there = pair ? 2 * plan.pixels : plan.pixels;
    const Cell cell{0, cells[n].out, pair ? plan.pixels + cells[n + 1].valid : cells[n].valid};
    for (Size v = 0; v < block.size && v * kLanes < block.count; ++v) {
      const Size first = block.first + v * kLanes, count = least(kLanes, block.count - v * kLanes);
      const vf shift = bias != nullptr ? load_first(bias + first, count) : vf{};
      vf square[kLanes];
      for (Size p = 0; p < kLanes; ++p) {
        square[p] = p < there ? load(sums + ((n * plan.pixels + p) * block.size + v) * kLanes) + shift : vf{};
      }
      transpose(square);
      for (Size o = 0; o < count; ++o) {
        put_pixels(out + (first + o) * plan.plane, cell, offsets, plan.scattered, square[o]);
      }
    }
    if (pair) ++n;
  }
}

/// `count` elements taken in turn from a and b.
LAMINA_INLINE void interleave(const float* a, const float* b, float* to, Size count) {
#if LAMINA_LANES == 16
#define LAMINA_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define LAMINA_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif LAMINA_LANES == 8
#define LAMINA_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define LAMINA_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define LAMINA_LOW 0, 4, 1, 5
#define LAMINA_HIGH 2, 6, 3, 7
#endif
  for (Size n = 0; n < count; n += 2 * kLanes, a += kLanes, b += kLanes) {
    const vf x = load(a), y = load(b);
    const vf low = __builtin_shufflevector(x, y, LAMINA_LOW), high = __builtin_shufflevector(x, y, LAMINA_HIGH);
    if (count - n >= 2 * kLanes) {
      store(to + n, low);
      store(to + n + kLanes, high);
    } else {
      store_first(to + n, low, least(kLanes, count - n));
      if (count - n > kLanes) store_first(to + n + kLanes, high, count - n - kLanes);
    }
  }
#undef LAMINA_LOW
#undef LAMINA_HIGH
}

/// Brings the planes of phases of one output channel to where they belong: `out` is its plane, rows from i0, columns
/// from j0 of each phase.
void merge_phases(const TapConvPlan& plan, const float* planes, Size band, Size i0, Size j0, float* out) {
  const TapConv& c = plan.c;
  const Size plane = plan.band * plan.width;
  for (Size n = 0; n < c.phase_count; ++n) {
    const TapPhase& phase = c.phases[n];
    const float* from = planes + n * plane;
    const bool pairs = c.step[1] == 2 && phase.column == 0 && n + 1 < c.phase_count && c.phases[n + 1].column == 1;
    const Size first_column = j0 * c.step[1] + phase.column, columns = least(plan.width, phase.columns.size - j0);
    for (Size i = 0; i < least(band, phase.rows.size - i0); ++i, from += plan.line) {
      float* to = out + ((i0 + i) * c.step[0] + phase.row) * c.width + first_column;
      if (pairs) {
        interleave(from, from + plane, to, least(2 * plan.width, c.width - first_column));
      } else if (c.step[1] == 1) {
        for (Size j = 0; j < columns; j += kLanes) {
          store_first(to + j, load_first(from + j, least(kLanes, columns - j)), least(kLanes, columns - j));
        }
      } else {
        for (Size j = 0; j < columns; ++j) to[j * c.step[1]] = from[j];
      }
    }
    if (pairs) ++n;
  }
}

void run_tap_conv(const TapConv& c, Executor& executor, MemoryPool& pool) {
  const TapConvPlan plan(c);
  const TapAxis &rows = plan.rows, &columns = plan.columns;
  const CopyLayout layout(rows, columns, c.channels, plan.together, plan.band, plan.width);
  const TapPhase single{rows, columns, 0, 0};
  const TapPhase* phases = plan.phased ? c.phases : &single;

  // Blocks of output channels, tap offsets and packed weights, for all units.
  const Size block_size = plan.channel_lanes ? max_channel_vectors(plan.pixels) : kMaxOutputs;
  const Size lanes = plan.channel_lanes ? kLanes : 1;
  const Size max_blocks = c.outputs / (block_size * lanes) + 4;
  Size taps = 0;
  for (Size n = 0; n < c.phase_count; ++n) taps += Size{phases[n].rows.taps} * phases[n].columns.taps;
  const Size packed = round_up(c.outputs, kLanes) * c.channels * taps;
  const Size block_bytes = round_up(max_blocks * Size{sizeof(OutputBlock)}, 64), tap_bytes = round_up(taps * 4, 64);
  const Size table_bytes = round_up(c.phase_count * Size{sizeof(PhaseTable)}, 64);
  const Scratch shared(pool, static_cast<std::size_t>(block_bytes + tap_bytes + table_bytes + c.groups * packed * 4));
  std::byte* memory = reinterpret_cast<std::byte*>(shared.floats());
  OutputBlock* blocks = reinterpret_cast<OutputBlock*>(memory);
  std::int32_t* offsets = reinterpret_cast<std::int32_t*>(memory + block_bytes);
  PhaseTable* tables = reinterpret_cast<PhaseTable*>(memory + block_bytes + tap_bytes);
  float* weights = reinterpret_cast<float*>(memory + block_bytes + tap_bytes + table_bytes);
  Size block_count = 0;
  for (Size o = 0; o < c.outputs;) {
    const Size size = part_of(plan.channel_lanes ? div_up(c.outputs - o, kLanes) : c.outputs - o, block_size);
    blocks[block_count++] = {o, least(size * lanes, c.outputs - o), size};
    o += size * lanes;
  }
  for (Size n = 0, at = 0; n < c.phase_count; ++n) {
    const TapAxis &p_axis = phases[n].rows, &q_axis = phases[n].columns;
    const Size own = Size{p_axis.taps} * q_axis.taps;
    tables[n] = {own, own * c.channels, at, round_up(c.outputs, kLanes) * c.channels * at};
    for (int p = 0; p < p_axis.taps; ++p) {
      for (int q = 0; q < q_axis.taps; ++q) {
        offsets[at++] = static_cast<std::int32_t>(tap_offset(p_axis, q_axis, layout, p, q));
      }
    }
  }
  auto pack = [&](Size n) {
    const Size phase = n % c.phase_count, group = n / c.phase_count / block_count;
    const OutputBlock& block = blocks[n / c.phase_count % block_count];
    pack_weights(plan, phases[phase], c.weight + group * c.weight_group, block,
                 weights + group * packed + tables[phase].weights + block.first * tables[phase].depth);
  };
  const Size packs = c.groups * block_count * c.phase_count;
  if (packs == 1 || packed * c.groups < 16384) {
    for (Size n = 0; n < packs; ++n) pack(n);
  } else {
    executor.run(packs, pack);
  }

  // Units of images, groups, bands of rows and columns; and of blocks, when there are few.
  const Size bundles = div_up(c.images, plan.together), bands = div_up(rows.size, plan.band);
  const Size strips = div_up(columns.size, plan.width), units = bundles * c.groups * bands * strips;
  Size parts = least(div_up(kJobs, units), most(1, c.outputs / 32));
  const Size part_blocks = div_up(block_count, parts);
  parts = div_up(block_count, part_blocks);
  const Size in_plane = rows.extent * columns.extent, in_image = c.groups * c.channels * in_plane;
  const Size out_plane = c.height * c.width, out_image = c.groups * c.outputs * out_plane;

  // A group of tiles and blocks goes through the channels together, a chunk at a time, while the chunk's weights
  // (channel lanes) or pixels (pixel lanes) are near.
  const Size max_vectors = plan.channel_lanes ? (plan.pixels == 7 ? 2 : 1) : max_pixel_vectors(blocks[0].size);
  const Size cell_floats = (plan.channel_lanes ? plan.pixels : 1) * block_size * kLanes;
  const Size group_cells = plan.channel_lanes ? most(2, least(16, kGroupSums / cell_floats)) : max_vectors;
  const Size near = most(1, kNearWeights / most(1, block_size * lanes * tables[0].depth));
  const Size group_blocks =
      plan.channel_lanes ? 1 : most(1, least(least(block_count, near), kGroupSums / (group_cells * cell_floats)));
  const Size max_cells = plan.together * plan.band * (plan.width / plan.pixels + 1) + 1;
  const Size copy_floats = round_up(layout.floats + kSlack, 16);
  const Size sum_floats = group_cells * group_blocks * cell_floats;
  const Size phase_floats = plan.phased ? round_up(plan.together * c.outputs * plan.plane + kSlack, 16) : 0;
  const Size cell_bytes = round_up(max_cells * Size{sizeof(Cell)}, 64);
  const Size table = plan.scattered ? plan.together * plan.band * plan.width : 0;

  auto unit = [&](Size n) {
    const Size part = n % parts;
    n /= parts;
    const Size j0 = n % strips * plan.width;
    n /= strips;
    const Size i0 = n % bands * plan.band;
    n /= bands;
    const Size group = n % c.groups, m0 = n / c.groups * plan.together;
    const Size images = least(plan.together, c.images - m0), band = least(plan.band, rows.size - i0);
    const Size width = least(plan.width, columns.size - j0);

    const Scratch scratch(pool, static_cast<std::size_t>((copy_floats + sum_floats + phase_floats) * 4 + cell_bytes +
                                                         table * Size{sizeof(Size)}));
    float* copy = scratch.floats();
    float* sums = copy + copy_floats;
    float* planes = sums + sum_floats;
    Cell* cells = reinterpret_cast<Cell*>(planes + phase_floats);
    Size* pixel_offsets = reinterpret_cast<Size*>(reinterpret_cast<std::byte*>(cells) + cell_bytes);
    fill_copy(rows, columns, layout, c.in + m0 * in_image + group * c.channels * in_plane, in_image, images, c.channels,
              i0, band, j0, copy);
    const Size cell_count = make_cells(plan, layout, images, band, width,
                                       plan.phased ? c.outputs * plan.plane : out_image, cells, pixel_offsets);
    float* out = c.out + m0 * out_image + group * c.outputs * out_plane;
    const float* bias = c.bias != nullptr ? c.bias + group * c.outputs : nullptr;
    const Size first_block = part * part_blocks, last_block = least(block_count, first_block + part_blocks);

    for (Size p = 0; p < c.phase_count; ++p) {
      const PhaseTable& table_of = tables[p];
      float* target = plan.phased ? planes + p * plan.band * plan.width : out + i0 * plan.line + j0;
      const float* phase_weights = weights + group * packed + table_of.weights;
      if (table_of.taps == 0) {
        for (Size m = 0; m < images && plan.phased; ++m) {
          for (Size o = blocks[first_block].first; o < blocks[last_block - 1].first + blocks[last_block - 1].count;
               ++o) {
            float* to = target + (m * c.outputs + o) * plan.plane;
            for (Size q = 0; q < plan.band * plan.width; ++q) to[q] = 0;
          }
        }
        if (plan.phased) continue;
      }
      const Size chunks = table_of.depth <= 2 * kChunk + kChunk / 2 ? 1 : div_up(table_of.depth, kChunk);
      const Size chunk = most(1, div_up(c.channels, chunks));
      for (Size b0 = first_block; b0 < last_block; b0 += group_blocks) {
        const Size b1 = least(last_block, b0 + group_blocks);
        for (Size cell = 0; cell < cell_count;) {
          // Cells of this group.
          const Size left = cell_count - cell;
          Size here = least(left, group_cells);
          if (!plan.channel_lanes) {
            here = left < max_vectors                            ? least(left, 4)
                   : left == max_vectors + 1 && max_vectors <= 4 ? div_up(left, 2)
                                                                 : max_vectors;
          }
          for (Size c0 = 0; c0 == 0 || c0 < c.channels; c0 += chunk) {
            const Size channels = least(chunk, c.channels - c0);
            for (Size b = b0; b < b1; ++b) {
              const OutputBlock& block = blocks[b];
              const float* w = phase_weights + block.first * table_of.depth + c0 * table_of.taps * block.size * lanes;
              float* own = sums + (b - b0) * group_cells * cell_floats;
              for (Size t = 0; t < here;) {
                const Size vectors = plan.channel_lanes ? least(max_vectors, here - t) : here;
                const Tile tile = plan.channel_lanes ? channel_tile_of(plan.pixels, vectors, block.size)
                                                     : pixel_tile_of(vectors, block.size);
                const float* x[8];
                for (Size v = 0; v < vectors; ++v) x[v] = copy + cells[cell + t + v].at + c0 * layout.channel;
                tile(x, offsets + table_of.offsets, table_of.taps, channels, layout.channel, w, own, c0 > 0);
                own += vectors * (plan.channel_lanes ? plan.pixels * block.size * kLanes : 0);
                t += vectors;
              }
            }
          }
          for (Size b = b0; b < b1; ++b) {
            put_tile(plan, blocks[b], cells + cell, here, pixel_offsets, sums + (b - b0) * group_cells * cell_floats,
                     bias, target);
          }
          cell += here;
        }
      }
    }
    if (plan.phased) {
      const Size first = blocks[first_block].first, last = blocks[last_block - 1].first + blocks[last_block - 1].count;
      for (Size m = 0; m < images; ++m) {
        for (Size o = first; o < last; ++o) {
          merge_phases(plan, planes + (m * c.outputs + o) * plan.plane, band, i0, j0,
                       out + m * out_image + o * out_plane);
        }
      }
    }
  };
  if (units * parts == 1) {
    unit(0);
  } else {
    executor.run(units * parts, unit);
  }
}

// ---- weight gradient ----

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

/// Taps that lie next to each other in the copy: up to three columns of one row.
struct TapRun {
  Size at;      ///< in a channel of the copy
  Size target;  ///< of the first tap in the kernel
  Size stride;  ///< from one to the next in the kernel
  int taps;
};

/// The runs of a kernel, those of three taps first; returns how many. `runs` has room for one a tap.
Size make_runs(const TapAxis& rows, const TapAxis& columns, const CopyLayout& layout, TapRun* runs) {
  Size count = 0;
  for (int wanted = 3; wanted >= 1; --wanted) {
    for (int p = 0; p < rows.taps; ++p) {
      for (int first = 0; first < columns.classes; ++first) {
        // Taps of a class in order; a run ends where the next offset is not the next.
        Size start = 0, stride = 0, last = 0, from = 0;
        int length = 0;
        auto flush = [&] {
          if (length == wanted) {
            runs[count++] = {
                (rows.tap_class[p] * columns.classes + first) * layout.plane + rows.offset[p] * layout.pitch + start,
                rows.index[p] * columns.taps + from, stride, length};
          }
          length = 0;
        };
        for (int q = 0; q < columns.taps; ++q) {
          if (columns.tap_class[q] != first) continue;
          if (length == 3 || (length > 0 && columns.offset[q] != start + length)) flush();
          if (length == 0) {
            start = columns.offset[q];
            from = columns.index[q];
          } else {
            stride = columns.index[q] - last;
          }
          last = columns.index[q];
          ++length;
        }
        flush();
      }
    }
  }
  return count;
}

void run_tap_weight_grad(const TapWeightGrad& g, Executor& executor, MemoryPool& pool) {
  const TapAxis &rows = g.rows, &columns = g.columns;
  const Size taps = Size{rows.taps} * columns.taps, depth = g.channels * taps;
  const Size pixels = rows.size * columns.size;
  const bool few = g.outputs < kLanes / 2;  // lanes of pixels

  // Units: bands of an image, or images together, of some hundred pixels.
  Size band = rows.size, together = 1;
  const Size most_pixels = most(columns.size, least(1024, 131072 / g.outputs));
  const Size channel_row = most(1, g.channels * rows.classes * columns.classes * (columns.size + columns.extra));
  if (pixels > most_pixels || (band + rows.extra) * channel_row > kCopyFloats) {
    band = least(most_pixels / columns.size, most(1, kCopyFloats / channel_row - rows.extra));
    band = div_up(rows.size, div_up(rows.size, least(band, rows.size)));
  } else {
    together = least(g.images, most(1, least(256, most_pixels) / pixels));
    together = most(1, least(together, kCopyFloats / ((band + rows.extra) * channel_row)));
  }
  const CopyLayout layout(rows, columns, g.channels, together, band, columns.size);
  const Size bands = div_up(rows.size, band), units = div_up(g.images, together) * bands;

  // Sums: a set for each of a fixed number of ranges of units, added up in order at the end.
  const Size padded = few ? g.outputs * kLanes : round_up(g.outputs, kLanes);
  const Size sum_floats = padded * depth;  // a group
  const Size splits = most(1, least(least(units, 8), (Size{1} << 22) / (sum_floats * g.groups)));
  const Size vectors = few ? 1 : div_up(g.outputs, kLanes);
  const Size blocks = few ? 1 : div_up(vectors, 2);
  Size parts = few ? 1 : least(div_up(8, splits * g.groups), blocks);
  const Size part_blocks = div_up(blocks, parts);
  parts = div_up(blocks, part_blocks);

  const std::size_t run_bytes = static_cast<std::size_t>(round_up(taps * Size{sizeof(TapRun)}, 64));
  const std::size_t offset_bytes = static_cast<std::size_t>(round_up(depth * Size{sizeof(Size)}, 64));
  const std::size_t sum_bytes = static_cast<std::size_t>(splits * g.groups * sum_floats) * sizeof(float);
  const Scratch shared(pool, run_bytes + offset_bytes + sum_bytes);
  std::byte* memory = reinterpret_cast<std::byte*>(shared.floats());
  TapRun* runs = reinterpret_cast<TapRun*>(memory);
  Size* offsets = reinterpret_cast<Size*>(memory + run_bytes);  // in the order of the sums
  float* sums = reinterpret_cast<float*>(memory + run_bytes + offset_bytes);
  // Runs of one length are together, each for all channels. `few` takes single taps in the order of the kernel.
  Size run_count = 0;
  if (few) {
    for (int p = 0; p < rows.taps; ++p) {
      for (int q = 0; q < columns.taps; ++q) {
        offsets[p * columns.taps + q] = tap_offset(rows, columns, layout, p, q);
      }
    }
  } else {
    run_count = make_runs(rows, columns, layout, runs);
    Size n = 0;
    for (int length = 3; length >= 1; --length) {
      for (Size c = 0; c < g.channels; ++c) {
        for (Size r = 0; r < run_count; ++r) {
          if (runs[r].taps == length) offsets[n++] = c * layout.channel + runs[r].at;
        }
      }
    }
  }

  const Size in_plane = rows.extent * columns.extent, in_image = g.groups * g.channels * in_plane;
  const Size dy_image = g.groups * g.outputs * pixels;
  const Size unit_pixels = together * band * columns.size;
  const Size copy_floats = round_up(layout.floats + kSlack, 16);

  auto job = [&](Size n) {
    const Size part = n % parts, group = n / parts % g.groups, split = n / parts / g.groups;
    const Size block_first = part * part_blocks, block_last = least(blocks, block_first + part_blocks);
    float* own = sums + (split * g.groups + group) * sum_floats;
    // Parts of one (split, group) own different blocks of its sums.
    const Size zero_from = few ? 0 : block_first * 2 * kLanes * depth;
    const Size zero_to = few ? sum_floats : least(padded, block_last * 2 * kLanes) * depth;
    for (Size q = zero_from; q < zero_to; q += kLanes) store(own + q, vf{});

    const Scratch scratch(pool,
                          static_cast<std::size_t>(copy_floats + (few ? 0 : unit_pixels * 2 * kLanes)) * sizeof(float));
    float* copy = scratch.floats();
    float* packed = copy + copy_floats;
    const Size first = units * split / splits, last = units * (split + 1) / splits;
    for (Size u = first; u < last; ++u) {
      const Size m0 = u / bands * together, i0 = u % bands * band;
      const Size images = least(together, g.images - m0), height = least(band, rows.size - i0);
      fill_copy(rows, columns, layout, g.in + m0 * in_image + group * g.channels * in_plane, in_image, images,
                g.channels, i0, height, 0, copy);
      const float* dy = g.dy + m0 * dy_image + group * g.outputs * pixels + i0 * columns.size;
      if (few) {
        for (Size m = 0; m < images; ++m) {
          for (Size o = 0; o < g.outputs; ++o) {
            for (Size c = 0; c < g.channels; ++c) {
              const float* x = copy + c * layout.channel + m * layout.rows * layout.pitch;
              const float* d = dy + m * dy_image + o * pixels;
              float* to = own + (o * g.channels + c) * taps * kLanes;
              for (Size t = 0; t < taps;) {
                if (taps - t >= 9) {
                  weight_lanes<9>(x, offsets + t, height, columns.size, layout.pitch, d, to + t * kLanes);
                  t += 9;
                } else if (taps - t >= 3) {
                  weight_lanes<3>(x, offsets + t, height, columns.size, layout.pitch, d, to + t * kLanes);
                  t += 3;
                } else {
                  weight_lanes<1>(x, offsets + t, height, columns.size, layout.pitch, d, to + t * kLanes);
                  t += 1;
                }
              }
            }
          }
        }
        continue;
      }
      const Size line = height * columns.size;
      for (Size b = block_first; b < block_last; ++b) {
        const Size o = b * 2 * kLanes, count = least(2 * kLanes, g.outputs - o), width = count > kLanes ? 2 : 1;
        for (Size m = 0; m < images; ++m) {
          const float* from = dy + m * dy_image + o * pixels;
          if (width == 2) {
            pack_panel<2 * kLanes>(packed + m * line * 2 * kLanes, from, pixels, 1, count, line);
          } else {
            pack_panel<kLanes>(packed + m * line * kLanes, from, pixels, 1, count, line);
          }
        }
        float* to = own + o * depth;
        const Size* at = offsets;
        for (int length = 3; length >= 1; --length) {
          Size left = 0;
          for (Size r = 0; r < run_count; ++r) left += runs[r].taps == length ? g.channels : 0;
          while (left > 0) {
            const WeightTileChoice choice = weight_tile_of(left, length, width);
            choice.tile(copy, at, images, layout.rows * layout.pitch, height, columns.size, layout.pitch, packed, to);
            left -= choice.runs;
            at += choice.runs;
            to += choice.runs * length * width * kLanes;
          }
        }
      }
    }
  };
  const Size jobs = splits * g.groups * parts;
  if (jobs == 1) {
    job(0);
  } else {
    executor.run(jobs, job);
  }

  auto finish = [&](Size n) {
    const Size group = n / vectors, v = n % vectors;
    const float* from = sums + group * sum_floats;
    const Size set = g.groups * sum_floats;
    float* dw = g.dw + group * g.outputs * depth;
    if (few) {
      for (Size k = 0; k < g.outputs * depth; ++k) {
        vf total = load(from + k * kLanes);
        for (Size s = 1; s < splits; ++s) total = total + load(from + s * set + k * kLanes);
        dw[k] = sum_lanes(total);
      }
      return;
    }
    const Size block = v / 2, width = least(2, vectors - block * 2);
    const Size count = least(kLanes, g.outputs - v * kLanes);
    from += block * 2 * kLanes * depth + v % 2 * kLanes;
    dw += v * kLanes * depth;
    for (int length = 3; length >= 1; --length) {
      for (Size c = 0; c < g.channels; ++c) {
        for (Size r = 0; r < run_count; ++r) {
          if (runs[r].taps != length) continue;
          for (int k = 0; k < length; ++k, from += width * kLanes) {
            vf total = load(from);
            for (Size s = 1; s < splits; ++s) total = total + load(from + s * set);
            float* to = dw + c * taps + runs[r].target + k * runs[r].stride;
            for (Size o = 0; o < count; ++o) to[o * depth] = total[o];
          }
        }
      }
    }
  };
  const Size parts_of_finish = g.groups * vectors;
  if (parts_of_finish == 1 || sum_floats * g.groups < 16384) {
    for (Size n = 0; n < parts_of_finish; ++n) finish(n);
  } else {
    executor.run(parts_of_finish, finish);
  }
}

// ---- kernels of 1 x 1: products of matrices ----

/// Images (n, channels, pixels) as a matrix of channels x all pixels, whose lines are pixels.
struct PixelColumns {
  const float* data;
  Size channels, pixels;
  void pack(float* to, Size first, Size lines, Size k0, Size steps) const {
    const Size image = first / pixels, pixel = first % pixels;
    const float* from = data + (image * channels + k0) * pixels + pixel;
    if (pixel + lines <= pixels) return pack_panel<kGemmNr>(to, from, 1, pixels, lines, steps);
    for (Size k = 0; k < steps; ++k) {
      for (Size j = 0; j < kGemmNr; ++j) {
        const Size at = first + j, n = at / pixels;
        to[k * kGemmNr + j] = j < lines ? data[(n * channels + k0 + k) * pixels + at % pixels] : 0.0f;
      }
    }
  }
  GemmOperand direct() const { return {}; }
};

/// The same matrix whose lines are channels.
template <int kStride>
struct PixelRows {
  const float* data;
  Size channels, pixels;
  void pack(float* to, Size first, Size lines, Size k0, Size steps) const {
    for (Size k = k0; k < k0 + steps;) {
      const Size image = k / pixels, pixel = k % pixels, count = least(pixels - pixel, k0 + steps - k);
      pack_panel<kStride>(to + (k - k0) * kStride, data + (image * channels + first) * pixels + pixel, pixels, 1, lines,
                          count);
      k += count;
    }
  }
  GemmOperand direct() const { return {}; }
};

/// Stores tiles of (outputs x all pixels), plus bias, as images.
void put_pixel_tile(const float* tile, Size row, Size rows, Size column, Size columns, const float* bias, Size outputs,
                    Size pixels, float* out) {
  const Size image = column / pixels;
  if (column % pixels + columns <= pixels) {
    float* y = out + image * (outputs - 1) * pixels;  // columns count on through the images
    store_tile(tile, y, pixels, row, rows, column, columns,
               [&](vf v, Size i, Size) { return bias != nullptr ? v + broadcast(bias[i]) : v; });
    return;
  }
  for (Size i = 0; i < rows; ++i) {
    const float shift = bias != nullptr ? bias[row + i] : 0.0f;
    for (Size j = 0; j < columns; ++j) {
      const Size at = column + j;
      out[(at / pixels * outputs + row + i) * pixels + at % pixels] = tile[i * kGemmNr + j] + shift;
    }
  }
}

void conv2d_pointwise(const Launch<Conv2d::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.in[0], launch.out[0]);
  const float* bias = launch.in.size() > 2 ? launch.in[2].as<const float>() : nullptr;
  float* y = launch.out[0].as<float>();
  gemm(
      s.outputs, s.images * s.pixels, s.channels, GemmA<float>{launch.in[1].as<const float>(), s.channels, 1},
      PixelColumns{launch.in[0].as<const float>(), s.channels, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        put_pixel_tile(tile, row, rows, column, columns, bias, s.outputs, s.pixels, y);
      },
      launch.executor, launch.pool);
}
void conv2d_input_grad_pointwise(const Launch<Conv2dInputGrad::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.out[0], launch.in[0]);
  float* dx = launch.out[0].as<float>();
  gemm(
      s.channels, s.images * s.pixels, s.outputs, GemmA<float>{launch.in[1].as<const float>(), 1, s.channels},
      PixelColumns{launch.in[0].as<const float>(), s.outputs, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        put_pixel_tile(tile, row, rows, column, columns, nullptr, s.channels, s.pixels, dx);
      },
      launch.executor, launch.pool);
}
void conv2d_weight_grad_pointwise(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  const PointwiseSizes s = pointwise_sizes(launch.in[1], launch.in[0]);
  float* dw = launch.out[0].as<float>();
  gemm(
      s.outputs, s.channels, s.images * s.pixels,
      PixelRows<kGemmStrideA>{launch.in[0].as<const float>(), s.outputs, s.pixels},
      PixelRows<kGemmNr>{launch.in[1].as<const float>(), s.channels, s.pixels},
      [&](const float* tile, Size row, Size rows, Size column, Size columns) {
        store_tile(tile, dw, s.channels, row, rows, column, columns, [](vf v, Size, Size) { return v; });
      },
      launch.executor, launch.pool);
}

void conv2d(const Launch<Conv2d::Attrs>& launch) { plan_conv2d(launch, run_tap_conv); }
void conv2d_input_grad(const Launch<Conv2dInputGrad::Attrs>& launch) { plan_conv2d_input_grad(launch, run_tap_conv); }
void conv2d_weight_grad(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  plan_conv2d_weight_grad(launch, run_tap_weight_grad);
}
