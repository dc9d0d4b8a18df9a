// Lanes of two vectors taken apart and put in turn. Included by vector code after simd.hpp (no include guard).

/// Elements 0, 2, 4, ... of a and b as one row.
LAMINA_INLINE vf even_elements(vf a, vf b) {
#if LAMINA_LANES == 16
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#elif LAMINA_LANES == 8
  return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}

/// a[0], b[0], a[1], b[1], ...: the first half ...
LAMINA_INLINE vf interleave_low(vf a, vf b) {
#if LAMINA_LANES == 16
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif LAMINA_LANES == 8
  return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
/// ... and the second.
LAMINA_INLINE vf interleave_high(vf a, vf b) {
#if LAMINA_LANES == 16
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif LAMINA_LANES == 8
  return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}
