// The transpose of a square of kLanes x kLanes floats in registers. Included by vector code after simd.hpp (no guard).
#if LAMINA_LANES == 4
#define LAMINA_UNPACK_LOW 0, 4, 1, 5
#define LAMINA_UNPACK_HIGH 2, 6, 3, 7
#define LAMINA_PAIRS_LOW 0, 1, 4, 5
#define LAMINA_PAIRS_HIGH 2, 3, 6, 7
#elif LAMINA_LANES == 8
#define LAMINA_UNPACK_LOW 0, 8, 1, 9, 4, 12, 5, 13
#define LAMINA_UNPACK_HIGH 2, 10, 3, 11, 6, 14, 7, 15
#define LAMINA_PAIRS_LOW 0, 1, 8, 9, 4, 5, 12, 13
#define LAMINA_PAIRS_HIGH 2, 3, 10, 11, 6, 7, 14, 15
#else
#define LAMINA_UNPACK_LOW 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29
#define LAMINA_UNPACK_HIGH 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31
#define LAMINA_PAIRS_LOW 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define LAMINA_PAIRS_HIGH 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#endif

/// Row i of the result is column i of v.
LAMINA_INLINE void transpose(vf* v) {
  // Squares of 4 x 4 within groups of four lanes ...
  for (int i = 0; i < kLanes; i += 4) {
    const vf a = __builtin_shufflevector(v[i], v[i + 1], LAMINA_UNPACK_LOW);
    const vf b = __builtin_shufflevector(v[i], v[i + 1], LAMINA_UNPACK_HIGH);
    const vf c = __builtin_shufflevector(v[i + 2], v[i + 3], LAMINA_UNPACK_LOW);
    const vf d = __builtin_shufflevector(v[i + 2], v[i + 3], LAMINA_UNPACK_HIGH);
    v[i] = __builtin_shufflevector(a, c, LAMINA_PAIRS_LOW);
    v[i + 1] = __builtin_shufflevector(a, c, LAMINA_PAIRS_HIGH);
    v[i + 2] = __builtin_shufflevector(b, d, LAMINA_PAIRS_LOW);
    v[i + 3] = __builtin_shufflevector(b, d, LAMINA_PAIRS_HIGH);
  }
  // ... then the groups.
#if LAMINA_LANES == 8
  for (int i = 0; i < 4; ++i) {
    const vf a = v[i], b = v[i + 4];
    v[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
    v[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
  }
#elif LAMINA_LANES == 16
  for (int i = 0; i < 4; ++i) {
    const vf a = v[i], b = v[i + 4], c = v[i + 8], d = v[i + 12];
    const vf ab_low = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const vf ab_high = __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    const vf cd_low = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    const vf cd_high = __builtin_shufflevector(c, d, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    v[i] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    v[i + 4] = __builtin_shufflevector(ab_low, cd_low, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
    v[i + 8] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    v[i + 12] = __builtin_shufflevector(ab_high, cd_high, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  }
#endif
}
#undef LAMINA_UNPACK_LOW
#undef LAMINA_UNPACK_HIGH
#undef LAMINA_PAIRS_LOW
#undef LAMINA_PAIRS_HIGH
