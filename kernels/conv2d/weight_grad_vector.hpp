// The weight gradient.
// Included by vector.hpp (no include guard).

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

/// Adds what `from` holds in [first, last) to `to`, and empties it.
void move_sums(float* from, float* to, Size first, Size last) {
  for (Size q = first; q < last; q += kLanes) {
    store(to + q, load(to + q) + load(from + q));
    store(from + q, vf{});
  }
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
  // Ranges of more than kUnitChain units have a second set, to which the first is added every so many.
  const Size set = g.groups * sum_floats;
  const bool chained = div_up(units, splits) > kUnitChain;
  const std::size_t sum_bytes = static_cast<std::size_t>((chained ? 2 : 1) * splits * set) * sizeof(float);
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
    float* const own = sums + split * set + group * sum_floats;
    float* const total = chained ? own + splits * set : own;
    // Parts of one (split, group) own different blocks of its sums.
    const Size own_from = few ? 0 : block_first * 2 * kLanes * depth;
    const Size own_to = few ? sum_floats : least(padded, block_last * 2 * kLanes) * depth;
    for (Size q = own_from; q < own_to; q += kLanes) {
      store(own + q, vf{});
      store(total + q, vf{});
    }

    const Scratch scratch(pool,
                          static_cast<std::size_t>(copy_floats + (few ? 0 : unit_pixels * 2 * kLanes)) * sizeof(float));
    float* copy = scratch.floats();
    float* packed = copy + copy_floats;
    const Size first = units * split / splits, last = units * (split + 1) / splits;
    for (Size u = first; u < last; ++u) {
      if (chained && u > first && (u - first) % kUnitChain == 0) move_sums(own, total, own_from, own_to);
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
    if (chained) move_sums(own, total, own_from, own_to);
  };
  const Size jobs = splits * g.groups * parts;
  if (jobs == 1) {
    job(0);
  } else {
    executor.run(jobs, job);
  }

  auto finish = [&](Size n) {
    const Size group = n / vectors, v = n % vectors;
    const float* from = sums + (chained ? splits * set : 0) + group * sum_floats;
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
