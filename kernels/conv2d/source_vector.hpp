// The copy of the source that a unit of work reads: padded, with strides undone (see TapAxis).
// Included by vector.hpp (no include guard).

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
