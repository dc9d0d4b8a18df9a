// The arithmetic of reductions on host memory. Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "lamina/dist/comm/message.hpp"

namespace lamina::comm {

/// to[i] = a[i] (op) b[i] for `count` elements; `to` may be a or b, otherwise they do not overlap. f16 and bf16 are
/// computed in f32 and rounded once. A NaN in either gives NaN, also for min and max; mean adds (see divide).
/// Pointers need no alignment.
void reduce(DType dtype, Reduction reduction, std::byte* to, const std::byte* a, const std::byte* b,
            std::int64_t count);

/// The same by each instruction set of this machine, the best first; for tests.
struct ReduceLoop {
  std::string_view name;
  void (*run)(DType, Reduction, std::byte* to, const std::byte* a, const std::byte* b, std::int64_t count);
};
std::span<const ReduceLoop> reduce_loops();

/// data[i] /= by: the end of a mean.
void divide(DType dtype, std::byte* data, std::int64_t count, double by);

/// Throws ValueError: mean of integers, anything of bool but min and max (and, or).
void check_reduction(DType dtype, Reduction reduction);

}  // namespace lamina::comm
