// What a run needs in memory at least, known before anything is allocated.
#pragma once

#include "lamina/models/data/dataset.hpp"
#include "lamina/tools/run_options.hpp"

namespace lamina::tools {

/// Bytes. Double: what is asked for may be more than any integer.
struct MemoryNeed {
  double weights = 0;    ///< parameters and buffers
  double gradients = 0;  ///< of every parameter
  double optimizer = 0;  ///< its state
  double batch = 0;      ///< one batch of inputs and labels
  double total() const { return weights + gradients + optimizer + batch; }
};

/// Of training, or of an evaluation, by building the model on the device without memory. Activations come on top.
/// Throws what open_model throws.
MemoryNeed memory_need(const RunOptions& options, const Dataset& dataset, bool training);

/// Throws OutOfMemory with the bytes needed and the bytes available when the one is more than the other.
void require_memory(const RunOptions& options, const Dataset& dataset, bool training);

}  // namespace lamina::tools
