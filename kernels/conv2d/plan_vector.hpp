// How run_tap_conv cuts its work: the kind of tile, units, blocks of output channels; and the weights of a block.
// Included by vector.hpp (no include guard).

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
