// How the CPU kernels see a convolution: as sums over taps, for the forward pass and the input gradient alike. Plain
// data, so that vector code can read it.
//
//   out[n, o, i, j] = sum over c and taps (p, q) of weight[o, c, p, q] * in[n, c, i step + shift_p, j step + shift_q]
//
// The input gradient of a convolution with stride s is s x s such sums with step 1, one a phase of the rows and columns
// of x, each with the taps that reach it; they read one source, and their outputs interleave.
#pragma once

#include <vector>

#include "lamina/core/executor.hpp"
#include "lamina/core/memory_pool.hpp"
#include "lamina/kernels/conv2d/op.hpp"

namespace lamina {

/// The taps along one spatial dim. Kernels read from a copy of the input in which positions that one tap reads for
/// neighbouring outputs are neighbours: class k holds the source positions start[k], start[k] + step, ...; tap t reads
/// class[t], `offset[t]` positions after the output's.
struct TapAxis {
  std::int64_t step = 1;
  std::int64_t extent = 0;  ///< of the source
  std::int64_t size = 0;    ///< of the output
  std::int64_t extra = 0;   ///< the largest offset
  int taps = 0;
  int classes = 0;
  const std::int64_t* start = nullptr;
  const std::int64_t* offset = nullptr;
  const std::int64_t* index = nullptr;  ///< in the kernel
  const int* tap_class = nullptr;
};

/// Owns a TapAxis. `copies` gives each tap a class of its own with offset 0, else one class serves a phase of the step.
class TapAxisOwner {
 public:
  struct Tap {
    std::int64_t index, shift;
  };
  TapAxisOwner(std::span<const Tap> taps, std::int64_t step, std::int64_t extent, std::int64_t size, bool copies);
  TapAxisOwner(const TapAxisOwner&) = delete;
  TapAxisOwner& operator=(const TapAxisOwner&) = delete;
  const TapAxis& axis() const { return axis_; }

 private:
  TapAxis axis_;
  std::vector<std::int64_t> start_, offset_, index_;
  std::vector<int> class_;
};

/// One of the sums: its taps, at offsets from the classes that all sums share, and where its outputs begin.
struct TapPhase {
  TapAxis rows, columns;  ///< `size` is this sum's own
  std::int64_t row = 0, column = 0;
};

struct TapConv {
  std::int64_t images = 0, groups = 1;
  std::int64_t channels = 0, outputs = 0;  ///< a group
  const float* in = nullptr;               ///< dense
  const float* weight = nullptr;
  const float* bias = nullptr;  ///< null: none
  float* out = nullptr;         ///< dense, height x width
  std::int64_t height = 0, width = 0;
  std::int64_t step[2] = {1, 1};                                         ///< of a phase's outputs
  std::int64_t weight_group = 0, weight_output = 0, weight_channel = 0;  ///< elements apart
  std::int64_t weight_row = 0;
  const TapPhase* phases = nullptr;
  std::int64_t phase_count = 1;
  TapAxis rows, columns;              ///< of the first phase, one class a phase of the source; `size` is the largest
  TapAxis row_copies, column_copies;  ///< the same, one class a tap; for a single phase
};

/// dw[o, c, p, q] = sum over n, i, j of dy[n, o, i, j] * x[n, c, i step + shift_p, j step + shift_q].
struct TapWeightGrad {
  std::int64_t images = 0, groups = 1;
  std::int64_t channels = 0, outputs = 0;  ///< a group
  const float* in = nullptr;
  const float* dy = nullptr;
  float* dw = nullptr;
  TapAxis rows, columns;
};

using RunTapConv = void (*)(const TapConv&, Executor&, MemoryPool&);
using RunTapWeightGrad = void (*)(const TapWeightGrad&, Executor&, MemoryPool&);

template <class Attrs>
struct Launch;

/// Give the sums an op consists of to `run`.
void plan_conv2d(const Launch<Conv2d::Attrs>& launch, RunTapConv run);
void plan_conv2d_input_grad(const Launch<Conv2dInputGrad::Attrs>& launch, RunTapConv run);
void plan_conv2d_weight_grad(const Launch<Conv2dWeightGrad::Attrs>& launch, RunTapWeightGrad run);

}  // namespace lamina
