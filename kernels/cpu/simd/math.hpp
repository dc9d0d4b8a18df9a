// exp, log, tanh, sigmoid and erf over lanes, of every float. Largest error in ulp of the true value, subnormals
// included (tests/simd): exp, log and erf 1.25, tanh and sigmoid 2.5. Overflow gives infinity, NaN stays NaN. Included
// by vector code after simd.hpp (no include guard). Polynomials are least-maximum fits of our own on the reduced
// ranges.

#include "lamina/kernels/formula.hpp"

/// 2^k for integer k in [-126, 127].
LAMINA_INLINE vf exp2_int(vi k) { return float_of((k + 127) << 23); }

/// x = k ln2 + r, |r| <= ln2 / 2, for |x| <= 1000. ln2 is in two parts.
struct ExpArgument {
  vf r;
  vi k;
};
LAMINA_INLINE ExpArgument split_exp(vf x) {
  const vf k = round(x * 1.44269504f);
  vf r = fma(k, broadcast(-0.693359375f), x);
  r = fma(k, broadcast(2.12194440e-4f), r);
  return {r, to_int(k)};
}
/// exp(r) for |r| <= ln2 / 2.
LAMINA_INLINE vf exp_of_rest(vf r) {
  vf p = broadcast(1.38210540e-3f);
  p = fma(p, r, broadcast(8.36867467e-3f));
  p = fma(p, r, broadcast(4.16682623e-2f));
  p = fma(p, r, broadcast(1.66665211e-1f));
  p = fma(p, r, broadcast(4.99999940e-1f));
  return fma(p, r * r, r) + 1.0f;
}

LAMINA_INLINE vf exp(vf x) {
  // From -104 down the result is 0, from 89 up infinity; NaN passes both bounds.
  const ExpArgument a = split_exp(max(broadcast(-104.0f), min(broadcast(89.0f), x)));
  // 2^k in two factors, so that results below the normal range and the last octave come out right.
  const vi half = a.k >> 1;
  return exp_of_rest(a.r) * exp2_int(half) * exp2_int(a.k - half);
}

LAMINA_INLINE vf log(vf x) {
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.1716.
  const vi small = x < 1.17549435e-38f;
  const vf scaled = small ? x * 8388608.0f : x;
  const vi b = bits_of(scaled);
  const vi k = reinterpret_cast<vi>(reinterpret_cast<vu>(b) - 0x3f3504f3u) >> 23;  // unsigned: it may wrap
  const vf m = float_of(reinterpret_cast<vi>(reinterpret_cast<vu>(b) - reinterpret_cast<vu>(k << 23)));
  const vf f = m - 1.0f;
  const vf s = f / (m + 1.0f);
  const vf z = s * s;
  vf p = broadcast(2.98708111e-1f);
  p = fma(p, z, broadcast(3.99775833e-1f));
  p = fma(p, z, broadcast(6.66667759e-1f));
  // 2s = f - s f, so log(m) = f - s (f - z p): the leading term carries no rounding.
  const vf e = to_float(k) - (small ? broadcast(23.0f) : vf{});
  const vf tail = fma(e, broadcast(-2.12194440e-4f), -(s * (f - z * p)));
  const vf y = fma(e, broadcast(0.693359375f), f + tail);
  const vf odd = x == 0.0f ? broadcast(-__builtin_inff()) : (x < 0.0f ? broadcast(__builtin_nanf("")) : x);
  const vi ordinary = (x > 0.0f) & (x < __builtin_inff());
  return ordinary ? y : odd;
}

LAMINA_INLINE vf sigmoid(vf x) {
  const vf e = exp(-abs(x));
  return (x < 0.0f ? e : broadcast(1.0f)) / (1.0f + e);
}

LAMINA_INLINE vf with_sign_of(vf magnitude, vf x) {
  return float_of((bits_of(magnitude) & 0x7fffffff) | (bits_of(x) & static_cast<std::int32_t>(0x80000000)));
}

LAMINA_INLINE vf tanh(vf x) {
  // With u = exp(2|x|) - 1: tanh|x| = u / (u + 2) = 1 - 2 / (u + 2). The first keeps small results exact, the second
  // those near 1; from 9.02 on it rounds to 1.
  const ExpArgument a = split_exp(2.0f * min(broadcast(10.0f), abs(x)));
  vf p = broadcast(1.97616697e-4f);
  p = fma(p, a.r, broadcast(1.39323261e-3f));
  p = fma(p, a.r, broadcast(8.33354611e-3f));
  p = fma(p, a.r, broadcast(4.16664928e-2f));
  p = fma(p, a.r, broadcast(1.66666657e-1f));
  p = fma(p, a.r, broadcast(0.5f));
  p = fma(p, a.r * a.r, a.r);  // exp(r) - 1
  const vf scale = exp2_int(a.k);
  const vf u = fma(scale, p, scale - 1.0f);
  const vi near_one = u > 2.0f;
  const vf q = (near_one ? broadcast(2.0f) : u) / (u + 2.0f);
  return with_sign_of(near_one ? 1.0f - q : q, x);
}

LAMINA_INLINE vf erf(vf x) {
  // Up to 1: x + x P(x^2). Beyond: 1 - exp(-Q(x)), where Q = -log erfc is smooth and 1 - erf(3.93) is below half an
  // ulp.
  const vf a = abs(x);
  const vf z = a * a;
  vf p = broadcast(7.80690316e-5f);
  p = fma(p, z, broadcast(-7.99785310e-4f));
  p = fma(p, z, broadcast(5.18716220e-3f));
  p = fma(p, z, broadcast(-2.68533472e-2f));
  p = fma(p, z, broadcast(1.12835787e-1f));
  p = fma(p, z, broadcast(-3.76126260e-1f));
  p = fma(p, z, broadcast(1.28379166e-1f));
  const vf b = min(broadcast(3.93f), a);
  vf q = broadcast(-1.86387348e-4f);
  q = fma(q, b, broadcast(2.94772093e-3f));
  q = fma(q, b, broadcast(-2.18382627e-2f));
  q = fma(q, b, broadcast(1.03107095e-1f));
  q = fma(q, b, broadcast(6.38144493e-1f));
  q = fma(q, b, broadcast(1.12708938e0f));
  q = fma(q, b, broadcast(3.41475563e-4f));
  const ExpArgument t = split_exp(-q);
  const vf e = exp_of_rest(t.r) * exp2_int(t.k);
  return with_sign_of(a < 1.0f ? fma(a, p, a) : 1.0f - e, x);
}
