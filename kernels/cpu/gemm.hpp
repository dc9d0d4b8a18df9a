// The matrix product engine of the CPU kernels: C = A B with f32 accumulation, for operands that say how to pack
// themselves and a caller who says what happens to finished tiles of C. Vector code uses it through simd/gemm.hpp.
//
// Goto's scheme: panels of B (k x nr) and A (mr x k) are packed so that a register micro-kernel reads both in order; k
// goes in steps of kc, rows in blocks of mc. An element of C is the sum over k in ascending order within each step of
// kc and over the steps in order: it depends on its row of A, its column of B and k, never on m, n, the split into
// blocks, the number of threads, or on whether an operand was packed.
#pragma once

#include <cstdint>

#include "lamina/core/executor.hpp"
#include "lamina/core/memory_pool.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

/// One operand of a product. "Lines" are rows of A, columns of B.
struct GemmOperand {
  /// Writes a panel: lines first..first+lines-1 (at most mr or nr), inner positions k0..k0+steps-1, converted to f32.
  /// Element (line, k) goes to to[(k - k0) * stride + line - first], stride being kGemmStrideA or kGemmNr of
  /// simd/gemm.hpp; the other positions of each group of `stride` are zeroed. Called from several threads at once.
  void (*pack)(const void* object, float* to, std::int64_t first, std::int64_t lines, std::int64_t k0,
               std::int64_t steps) = nullptr;
  const void* object = nullptr;
  /// If the operand is f32 in memory, where: small products then read it in place. Null otherwise.
  const float* direct = nullptr;
  std::int64_t line_stride = 0;
  std::int64_t k_stride = 0;
};

struct GemmProblem {
  std::int64_t m = 0, n = 0, k = 0;
  GemmOperand a, b;
  /// Takes a finished tile: element (row + i, column + j) is tile[i * kGemmNr + j]; i < rows, j < columns. What lies at
  /// j >= columns may be read but means nothing. Called once for each element of C, from several threads at once. The
  /// tile is aligned to 64 bytes.
  void (*store)(const void* object, const float* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
                std::int64_t columns) = nullptr;
  const void* object = nullptr;
};

/// C = A B. Nothing is done when m or n is 0; k = 0 gives zeros.
void gemm(Isa isa, const GemmProblem& problem, Executor& executor, MemoryPool& pool);

/// The register micro-kernel of an instruction set and the sizes it works on.
struct GemmKernel {
  int mr, nr;
  int stride_a;     ///< floats from one k to the next in a panel of A
  std::int64_t kc;  ///< inner positions a pass
  std::int64_t mc;  ///< rows of A packed at a time
  /// tile (rows x nr) = (add ? tile : 0) + A B over `steps`. A is a packed panel. Prefetches `ahead` by the way,
  /// `ahead_step` floats a step.
  void (*packed)(int rows, std::int64_t steps, const float* a, const float* b, std::int64_t b_stride, float* tile,
                 bool add, const float* ahead, std::int64_t ahead_step);
  /// The same, A in place.
  void (*direct)(int rows, std::int64_t steps, const float* a, std::int64_t line_stride, std::int64_t k_stride,
                 const float* b, std::int64_t b_stride, float* tile, bool add);
};
const GemmKernel& gemm_kernel(Isa isa) noexcept;

}  // namespace lamina
