// The register micro-kernel of the matrix product and its sizes. Included by vector code after simd.hpp (no guard).
#if defined(__clang__)
#define LAMINA_UNROLL _Pragma("unroll")
#else
#define LAMINA_UNROLL _Pragma("GCC unroll 16")
#endif

#if LAMINA_LANES == 16
inline constexpr int kGemmMr = 14;  // 28 sums, two of B and one of A: 31 of the 32 registers
#elif LAMINA_LANES == 8
inline constexpr int kGemmMr = 6;  // 12 sums, two of B and one of A: 15 of 16
#else
inline constexpr int kGemmMr = 4;  // without a fused multiply-add products need registers too
#endif
inline constexpr int kGemmNr = 2 * kLanes;
inline constexpr int kGemmStrideA = (kGemmMr + kLanes - 1) / kLanes * kLanes;
/// Inner positions summed in one go; the sums of these blocks are added in their order.
inline constexpr std::int64_t kGemmKc = 256;

/// tile (kRows x kVectors registers) = (add ? tile : 0) + A B over `steps`; element (r, k) of A is
/// a[r * line_stride + k * k_stride], row k of B is at b + k * b_stride.
template <int kRows, int kVectors = 2>
LAMINA_INLINE void gemm_micro(std::int64_t steps, const float* a, std::int64_t line_stride, std::int64_t k_stride,
                              const float* b, std::int64_t b_stride, float* tile, std::int64_t tile_stride, bool add) {
  vf sum[kRows][kVectors] = {};
  // Three rows a pointer: x86 addresses reach base, base + stride and base + 2 stride.
  const float* rows[(kRows + 2) / 3];
  for (int g = 0; g < (kRows + 2) / 3; ++g) rows[g] = a + 3 * g * line_stride;
  for (std::int64_t k = 0; k < steps; ++k) {
    vf row[kVectors];
    for (int v = 0; v < kVectors; ++v) row[v] = load(b + v * kLanes);
    LAMINA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const vf x = broadcast(rows[r / 3][r % 3 * line_stride]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fma(x, row[v], sum[r][v]);
    }
    b += b_stride;
    for (int g = 0; g < (kRows + 2) / 3; ++g) rows[g] += k_stride;
  }
  LAMINA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* to = tile + r * tile_stride;
    for (int v = 0; v < kVectors; ++v) {
      store(to + v * kLanes, add ? load(to + v * kLanes) + sum[r][v] : sum[r][v]);
    }
  }
}

/// The same with a packed panel of A; meanwhile fetches memory that is needed next: the tile, and `ahead` by
/// `ahead_step` floats a step (any address will do).
template <int kRows>
LAMINA_INLINE void gemm_micro_packed(std::int64_t steps, const float* a, const float* b, std::int64_t b_stride,
                                     float* tile, bool add, const float* ahead, std::int64_t ahead_step) {
  vf sum[kRows][2] = {};
  if (add) {
    for (int i = 0; i < kRows * kGemmNr; i += 16) __builtin_prefetch(tile + i);
  }
  for (std::int64_t k = 0; k < steps; ++k) {
    const vf b0 = load(b);
    const vf b1 = load(b + kLanes);
    __builtin_prefetch(ahead);
    LAMINA_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const vf x = broadcast(a[r]);
      sum[r][0] = fma(x, b0, sum[r][0]);
      sum[r][1] = fma(x, b1, sum[r][1]);
    }
    a += kGemmStrideA;
    b += b_stride;
    ahead += ahead_step;
  }
  LAMINA_UNROLL
  for (int r = 0; r < kRows; ++r) {
    float* to = tile + r * kGemmNr;
    if (add) {
      sum[r][0] = load(to) + sum[r][0];
      sum[r][1] = load(to + kLanes) + sum[r][1];
    }
    store(to, sum[r][0]);
    store(to + kLanes, sum[r][1]);
  }
}
