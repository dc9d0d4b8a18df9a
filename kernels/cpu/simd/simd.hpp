// Vector types over LAMINA_LANES lanes, included once per instruction set by for_each_isa.hpp (no include guard).
// Arithmetic, comparisons and selection (mask ? a : b) are the compiler's own on these types; here is what it lacks.
// A register holds LAMINA_REGISTER_LANES lanes; where that is less than LAMINA_LANES, operations go register by
// register.

inline constexpr int kLanes = LAMINA_LANES;
inline constexpr int kRegisters = LAMINA_LANES / LAMINA_REGISTER_LANES;

typedef float vf __attribute__((vector_size(4 * LAMINA_LANES)));
typedef std::int32_t vi __attribute__((vector_size(4 * LAMINA_LANES)));
typedef std::uint32_t vu __attribute__((vector_size(4 * LAMINA_LANES)));
typedef std::uint16_t vh __attribute__((vector_size(2 * LAMINA_LANES)));  // storage of bf16 and f16
typedef float vf_unaligned __attribute__((vector_size(4 * LAMINA_LANES), aligned(4), may_alias));
typedef std::int32_t vi_unaligned __attribute__((vector_size(4 * LAMINA_LANES), aligned(4), may_alias));
typedef std::uint16_t vh_unaligned __attribute__((vector_size(2 * LAMINA_LANES), aligned(2), may_alias));

#if LAMINA_REGISTER_LANES == 16
typedef __m512 vregister;
typedef __m512i vregister_int;
#elif LAMINA_REGISTER_LANES == 8
typedef __m256 vregister;
typedef __m256i vregister_int;
#else
typedef __m128 vregister;
typedef __m128i vregister_int;
#endif

union Registers {
  vf v;
  vregister r[kRegisters];
};
union IntRegisters {
  vi v;
  vregister_int r[kRegisters];
};

#define LAMINA_INLINE [[gnu::always_inline, maybe_unused]] inline

LAMINA_INLINE vf broadcast(float x) { return x - vf{}; }  // x - 0 keeps the sign of -0
LAMINA_INLINE vi broadcast(std::int32_t x) { return x - vi{}; }

LAMINA_INLINE vi bits_of(vf a) { return reinterpret_cast<vi>(a); }
LAMINA_INLINE vf float_of(vi a) { return reinterpret_cast<vf>(a); }

LAMINA_INLINE vf load(const float* p) { return *reinterpret_cast<const vf_unaligned*>(p); }
LAMINA_INLINE void store(float* p, vf v) { *reinterpret_cast<vf_unaligned*>(p) = v; }

/// 0, 1, 2, ...
LAMINA_INLINE vi lane_numbers() {
#if LAMINA_LANES == 16
  return vi{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif LAMINA_LANES == 8
  return vi{0, 1, 2, 3, 4, 5, 6, 7};
#else
  return vi{0, 1, 2, 3};
#endif
}
/// True in the first n lanes.
LAMINA_INLINE vi first_lanes(std::int64_t n) { return lane_numbers() < broadcast(static_cast<std::int32_t>(n)); }

/// The first n lanes (0 <= n <= kLanes); the others are `rest`. Touches no memory beyond them.
LAMINA_INLINE vf load_first(const float* p, std::int64_t n, float rest = 0) {
#if LAMINA_REGISTER_LANES == 16
  return _mm512_mask_loadu_ps(_mm512_set1_ps(rest), static_cast<__mmask16>((1u << n) - 1u), p);
#elif LAMINA_REGISTER_LANES == 8
  const IntRegisters mask{first_lanes(n)};
  Registers v;
  for (int i = 0; i < kRegisters; ++i) v.r[i] = _mm256_maskload_ps(p + 8 * i, mask.r[i]);
  return mask.v ? v.v : broadcast(rest);
#else
  vf v = broadcast(rest);
  for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
LAMINA_INLINE void store_first(float* p, vf v, std::int64_t n) {
#if LAMINA_REGISTER_LANES == 16
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1u), v);
#elif LAMINA_REGISTER_LANES == 8
  const IntRegisters mask{first_lanes(n)};
  const Registers x{v};
  for (int i = 0; i < kRegisters; ++i) _mm256_maskstore_ps(p + 8 * i, mask.r[i], x.r[i]);
#else
  for (std::int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

/// The same of 16-bit elements; the other lanes are 0.
LAMINA_INLINE vh load_first(const std::uint16_t* p, std::int64_t n) {
#if LAMINA_REGISTER_LANES == 16
  return reinterpret_cast<vh>(_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1u), p));
#else
  vh v{};
  for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
#endif
}
LAMINA_INLINE void store_first(std::uint16_t* p, vh v, std::int64_t n) {
#if LAMINA_REGISTER_LANES == 16
  _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << n) - 1u), reinterpret_cast<__m256i>(v));
#else
  for (std::int64_t i = 0; i < n; ++i) p[i] = v[i];
#endif
}

#if LAMINA_REGISTER_LANES == 16
LAMINA_INLINE vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
LAMINA_INLINE vf sqrt(vf a) { return _mm512_sqrt_ps(a); }
LAMINA_INLINE vf round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
#elif LAMINA_REGISTER_LANES == 8
LAMINA_INLINE vf fma(vf a, vf b, vf c) {
  Registers x{a}, y{b}, z{c};
  for (int i = 0; i < kRegisters; ++i) z.r[i] = _mm256_fmadd_ps(x.r[i], y.r[i], z.r[i]);
  return z.v;
}
LAMINA_INLINE vf sqrt(vf a) {
  Registers x{a};
  for (int i = 0; i < kRegisters; ++i) x.r[i] = _mm256_sqrt_ps(x.r[i]);
  return x.v;
}
LAMINA_INLINE vf round(vf a) {
  Registers x{a};
  for (int i = 0; i < kRegisters; ++i) {
    x.r[i] = _mm256_round_ps(x.r[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  return x.v;
}
#else
LAMINA_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }  // rounds twice: baseline has no fused form
LAMINA_INLINE vf sqrt(vf a) { return _mm_sqrt_ps(a); }
LAMINA_INLINE vf round(vf a) {
  // Adding 2^23 to what is smaller drops the fraction.
  const vi sign = bits_of(a) & static_cast<std::int32_t>(0x80000000);
  const vf magnitude = float_of(bits_of(a) ^ sign);
  return magnitude < 8388608.0f ? float_of(bits_of((magnitude + 8388608.0f) - 8388608.0f) | sign) : a;
}
#endif

/// Rounds toward zero; undefined outside the range of int32.
LAMINA_INLINE vi to_int(vf a) { return __builtin_convertvector(a, vi); }
LAMINA_INLINE vf to_float(vi a) { return __builtin_convertvector(a, vf); }
LAMINA_INLINE vf abs(vf a) { return float_of(bits_of(a) & 0x7fffffff); }
/// b where either is NaN.
LAMINA_INLINE vf min(vf a, vf b) { return a < b ? a : b; }
LAMINA_INLINE vf max(vf a, vf b) { return a > b ? a : b; }

typedef float vquad __attribute__((vector_size(16)));

/// Folds the lanes to one number in a fixed order: halves pairwise. `f` takes two vectors of any width.
template <class F>
LAMINA_INLINE float fold_lanes(vf v, F f) {
#if LAMINA_REGISTER_LANES == 16
  const __m256 half = f(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  vquad q = f(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif LAMINA_REGISTER_LANES == 8
  Registers x{v};
  for (int i = 1; i < kRegisters; ++i) x.r[0] = f(x.r[0], x.r[i]);
  vquad q = f(_mm256_castps256_ps128(x.r[0]), _mm256_extractf128_ps(x.r[0], 1));
#else
  vquad q = v;
#endif
  q = f(q, vquad(_mm_movehl_ps(q, q)));
  q = f(q, vquad(_mm_shuffle_ps(q, q, 1)));
  return q[0];
}

struct Plus {
  template <class V>
  LAMINA_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};
/// The larger; NaN if either is.
struct Larger {
  template <class V>
  LAMINA_INLINE V operator()(V a, V b) const {
    return ((b > a) | (b != b)) ? b : a;
  }
};
struct Smaller {
  template <class V>
  LAMINA_INLINE V operator()(V a, V b) const {
    return ((b < a) | (b != b)) ? b : a;
  }
};

LAMINA_INLINE float sum_lanes(vf v) { return fold_lanes(v, Plus{}); }
LAMINA_INLINE float max_lanes(vf v) { return fold_lanes(v, Larger{}); }

// ---- bf16 and f16 storage, f32 arithmetic ----

/// Lanes that fit 16 bits, without sign, narrowed.
LAMINA_INLINE vh narrow(vi v) {
#if LAMINA_REGISTER_LANES == 16
  return reinterpret_cast<vh>(_mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(v)));
#elif LAMINA_REGISTER_LANES == 8
  const IntRegisters x{v};
  union {
    vh v;
    __m128i r[kRegisters];
  } y;
  for (int i = 0; i < kRegisters; ++i) {
    y.r[i] = _mm_packus_epi32(_mm256_castsi256_si128(x.r[i]), _mm256_extracti128_si256(x.r[i], 1));
  }
  return y.v;
#else
  const __m128i x = reinterpret_cast<__m128i>((v << 16) >> 16);  // signed: the only saturating form SSE2 has
  const __m128i packed = _mm_packs_epi32(x, x);
  vh y;
  __builtin_memcpy(&y, &packed, sizeof(y));
  return y;
#endif
}

LAMINA_INLINE vf from_bf16(vh h) { return float_of(__builtin_convertvector(h, vi) << 16); }
LAMINA_INLINE vh to_bf16(vf v) {
  const vu u = reinterpret_cast<vu>(v);
  const vi rounded = reinterpret_cast<vi>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  const vi quiet = reinterpret_cast<vi>((u >> 16) | 0x40u);
  return narrow(v != v ? quiet : rounded);
}
LAMINA_INLINE vf from_f16(vh h) {
#if LAMINA_REGISTER_LANES == 16
  return _mm512_cvtph_ps(reinterpret_cast<__m256i>(h));
#elif LAMINA_REGISTER_LANES == 8
  union {
    vh v;
    __m128i r[kRegisters];
  } x{h};
  Registers y;
  for (int i = 0; i < kRegisters; ++i) y.r[i] = _mm256_cvtph_ps(x.r[i]);
  return y.v;
#else
  const vi w = __builtin_convertvector(h, vi);
  const vi magnitude = w & 0x7fff;
  const vi normal = (magnitude << 13) + (112 << 23);
  const vi subnormal = bits_of(to_float(magnitude) * 5.96046448e-8f);  // 2^-24
  const vi special = (magnitude << 13) | (magnitude > 0x7c00 ? broadcast(0x7fc00000) : broadcast(0x7f800000));
  const vi finite = magnitude < 0x400 ? subnormal : normal;
  return float_of((magnitude < 0x7c00 ? finite : special) | ((w & 0x8000) << 16));
#endif
}
LAMINA_INLINE vh to_f16(vf v) {
#if LAMINA_REGISTER_LANES == 16
  return reinterpret_cast<vh>(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif LAMINA_REGISTER_LANES == 8
  Registers x{v};
  union {
    vh v;
    __m128i r[kRegisters];
  } y;
  for (int i = 0; i < kRegisters; ++i) {
    y.r[i] = _mm256_cvtps_ph(x.r[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  return y.v;
#else
  // As Half(float) does it.
  const vi u = bits_of(v) & 0x7fffffff;
  const vi normal = (u + 0xfff + ((u >> 13) & 1) - 0x38000000) >> 13;
  const vi subnormal = bits_of(float_of(u) + 0.5f) - 0x3f000000;
  const vi special = u > 0x7f800000 ? 0x7e00 | ((u >> 13) & 0x3ff) : broadcast(0x7c00);
  const vi finite = u < 0x38800000 ? subnormal : normal;
  const vi sign = (bits_of(v) >> 16) & 0x8000;
  return narrow((u < 0x477ff000 ? finite : special) | sign);
#endif
}

/// How elements of a storage type are read and written as float lanes: all of them, or the first n and no others.
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  LAMINA_INLINE static vf load(const float* p) { return *reinterpret_cast<const vf_unaligned*>(p); }
  LAMINA_INLINE static void store(float* p, vf v) { *reinterpret_cast<vf_unaligned*>(p) = v; }
  LAMINA_INLINE static vf load(const float* p, std::int64_t n) { return load_first(p, n); }
  LAMINA_INLINE static void store(float* p, vf v, std::int64_t n) { store_first(p, v, n); }
  LAMINA_INLINE static float get(const float* p) { return *p; }
  LAMINA_INLINE static void put(float* p, float v) { *p = v; }
};
template <>
struct Lanes<BFloat16> {
  LAMINA_INLINE static vf load(const BFloat16* p) { return from_bf16(*reinterpret_cast<const vh_unaligned*>(p)); }
  LAMINA_INLINE static void store(BFloat16* p, vf v) { *reinterpret_cast<vh_unaligned*>(p) = to_bf16(v); }
  LAMINA_INLINE static vf load(const BFloat16* p, std::int64_t n) {
    return from_bf16(load_first(reinterpret_cast<const std::uint16_t*>(p), n));
  }
  LAMINA_INLINE static void store(BFloat16* p, vf v, std::int64_t n) {
    store_first(reinterpret_cast<std::uint16_t*>(p), to_bf16(v), n);
  }
  LAMINA_INLINE static float get(const BFloat16* p) { return static_cast<float>(*p); }
  LAMINA_INLINE static void put(BFloat16* p, float v) { *p = BFloat16(v); }
};
template <>
struct Lanes<Half> {
  LAMINA_INLINE static vf load(const Half* p) { return from_f16(*reinterpret_cast<const vh_unaligned*>(p)); }
  LAMINA_INLINE static void store(Half* p, vf v) { *reinterpret_cast<vh_unaligned*>(p) = to_f16(v); }
  LAMINA_INLINE static vf load(const Half* p, std::int64_t n) {
    return from_f16(load_first(reinterpret_cast<const std::uint16_t*>(p), n));
  }
  LAMINA_INLINE static void store(Half* p, vf v, std::int64_t n) {
    store_first(reinterpret_cast<std::uint16_t*>(p), to_f16(v), n);
  }
  LAMINA_INLINE static float get(const Half* p) { return static_cast<float>(*p); }
  LAMINA_INLINE static void put(Half* p, float v) { *p = Half(v); }
};
