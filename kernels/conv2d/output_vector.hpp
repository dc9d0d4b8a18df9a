// From sums to outputs: where tiles are, what they store, and how the phases of an input gradient interleave.
// Included by vector.hpp (no include guard).

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
  for (Size n = 0; n < count; n += 2 * kLanes, a += kLanes, b += kLanes) {
    const vf x = load(a), y = load(b);
    const vf low = interleave_low(x, y), high = interleave_high(x, y);
    if (count - n >= 2 * kLanes) {
      store(to + n, low);
      store(to + n + kLanes, high);
    } else {
      store_first(to + n, low, least(kLanes, count - n));
      if (count - n > kLanes) store_first(to + n + kLanes, high, count - n - kLanes);
    }
  }
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
