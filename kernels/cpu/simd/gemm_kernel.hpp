// The micro-kernel for every number of rows: what cpu/gemm.cpp compiles per instruction set.
#include "lamina/kernels/cpu/simd/gemm_micro.hpp"

template <int kRows>
[[gnu::noinline]] void micro_rows(std::int64_t steps, const float* a, const float* b, std::int64_t b_stride,
                                  float* tile, bool add, const float* ahead, std::int64_t ahead_step) {
  gemm_micro_packed<kRows>(steps, a, b, b_stride, tile, add, ahead, ahead_step);
}
template <int kRows>
[[gnu::noinline]] void micro_rows_direct(std::int64_t steps, const float* a, std::int64_t line_stride,
                                         std::int64_t k_stride, const float* b, std::int64_t b_stride, float* tile,
                                         bool add) {
  gemm_micro<kRows>(steps, a, line_stride, k_stride, b, b_stride, tile, kGemmNr, add);
}

template <int kRows = kGemmMr>
void micro_packed(int rows, std::int64_t steps, const float* a, const float* b, std::int64_t b_stride, float* tile,
                  bool add, const float* ahead, std::int64_t ahead_step) {
  if (rows == kRows) return micro_rows<kRows>(steps, a, b, b_stride, tile, add, ahead, ahead_step);
  if constexpr (kRows > 1) micro_packed<kRows - 1>(rows, steps, a, b, b_stride, tile, add, ahead, ahead_step);
}
template <int kRows = kGemmMr>
void micro_direct(int rows, std::int64_t steps, const float* a, std::int64_t line_stride, std::int64_t k_stride,
                  const float* b, std::int64_t b_stride, float* tile, bool add) {
  if (rows == kRows) return micro_rows_direct<kRows>(steps, a, line_stride, k_stride, b, b_stride, tile, add);
  if constexpr (kRows > 1) micro_direct<kRows - 1>(rows, steps, a, line_stride, k_stride, b, b_stride, tile, add);
}

inline constexpr GemmKernel kGemmKernel = {kGemmMr,      kGemmNr,        kGemmStrideA,  kGemmKc,
                                           20 * kGemmMr, micro_packed<>, micro_direct<>};
