// Forward pass and input gradient: sums over taps, see kernels/conv2d/plan.hpp.
// Included by vector.hpp (no include guard).

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
