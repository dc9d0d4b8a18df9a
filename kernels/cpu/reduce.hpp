// The host part of CPU reductions: how a dense input's dims are merged, and how the work is cut into fixed
// blocks. The loops are in simd/reduce.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamina/core/executor.hpp"
#include "lamina/core/shape.hpp"
#include "lamina/kernels/cpu/scratch.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

/// Elements a block of a reduction works on.
inline constexpr std::int64_t kReduceBlock = 32768;

/// Some dims of a dense tensor, merged where they touch: element offsets of their positions in row-major order.
struct MergedDims {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t dims[kMaxRank] = {};
  std::int64_t strides[kMaxRank] = {};

  std::int64_t offset(std::int64_t index) const noexcept {
    if (rank == 1) return index * strides[0];
    std::int64_t at = 0;
    for (int i = rank - 1; i >= 0; --i) {
      at += index % dims[i] * strides[i];
      index /= dims[i];
    }
    return at;
  }
};

/// A reduction of a dense tensor that has elements: `kept.count` outputs or rows of outputs, each of
/// `reduced.count` runs of `inner` neighbouring elements.
struct ReducePlan {
  MergedDims kept;
  MergedDims reduced;
  std::int64_t inner = 1;
  bool inner_reduced = true;  ///< a run is reduced to one output; else it is added to a run of outputs
};
ReducePlan reduce_plan(const Shape& in, std::uint32_t axes);

/// Runs blocks; a single one without the hand-over to the pool.
inline void run_blocks(Executor& executor, std::int64_t count, BlockFunction block) {
  if (count == 1) return block(0);
  if (count > 1) executor.run(count, block);
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return (a + b - 1) / b; }
/// How many things of `elements` each make a block, at least 1.
constexpr std::int64_t block_of(std::int64_t elements, std::int64_t block = kReduceBlock) noexcept {
  return elements >= block ? 1 : block / (elements > 0 ? elements : 1);
}

template <class O, DType dtype>
Support supports_floating(const typename O::Attrs&, Operands in, Operands out) {
  return all_floating<dtype>(in, out) ? Support::yes() : Support::no("other dtype");
}

/// Of an op whose shape rule gives all dtypes by that of operand 0: what it accumulates may lie in another.
template <class O, DType dtype>
Support supports_first(const typename O::Attrs&, Operands in, Operands) {
  return in[0].dtype == dtype ? Support::yes() : Support::no("other dtype");
}

}  // namespace lamina

/// The variants of a template over the element type: f32, bf16 and f16, dense operands.
#define LAMINA_REDUCE_VARIANTS(O, op, kernel) LAMINA_REDUCE_VARIANTS_IF(supports_floating, O, op, kernel)
#define LAMINA_REDUCE_VARIANTS_IF(supports, O, op, kernel)                                               \
  LAMINA_ISA_VARIANTS(O, (supports<O, DType::f32>), op ".cpu.vector.f32", kernel<float>, true),          \
      LAMINA_ISA_VARIANTS(O, (supports<O, DType::bf16>), op ".cpu.vector.bf16", kernel<BFloat16>, true), \
      LAMINA_ISA_VARIANTS(O, (supports<O, DType::f16>), op ".cpu.vector.f16", kernel<Half>, true)
