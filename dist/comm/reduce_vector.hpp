// The loops of reductions over vectors of LAMINA_VECTOR_BYTES. Included once per instruction set by reduce.cpp (no
// include guard), into a namespace of its own; internal linkage, so that no copy compiled for one set serves another.

template <class T>
struct Lanes {
  typedef T any __attribute__((vector_size(LAMINA_VECTOR_BYTES), aligned(1), may_alias));
  static constexpr std::int64_t count = LAMINA_VECTOR_BYTES / sizeof(T);
};

// to[i] = f(a[i], b[i])
template <class T, class F>
void for_lanes(T* to, const T* a, const T* b, std::int64_t count, F f) {
  using Any = typename Lanes<T>::any;
  std::int64_t i = 0;
  for (; i + Lanes<T>::count <= count; i += Lanes<T>::count) {
    const Any x = *reinterpret_cast<const Any*>(a + i), y = *reinterpret_cast<const Any*>(b + i);
    *reinterpret_cast<Any*>(to + i) = f(x, y);
  }
  for (; i < count; ++i) {
    T x, y;
    __builtin_memcpy(&x, a + i, sizeof x);
    __builtin_memcpy(&y, b + i, sizeof y);
    const T z = static_cast<T>(f(x, y));
    __builtin_memcpy(to + i, &z, sizeof z);
  }
}

// Sums and products of integers are those of their unsigned forms: they wrap. `Ordered` is the type that compares.
template <class T, class Ordered>
void reduce_numbers(Reduction reduction, std::byte* to, const std::byte* a, const std::byte* b, std::int64_t count) {
  auto as = [&]<class U>(U, auto f) {
    for_lanes(reinterpret_cast<U*>(to), reinterpret_cast<const U*>(a), reinterpret_cast<const U*>(b), count, f);
  };
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean: return as(T{}, [](auto x, auto y) { return x + y; });
    case Reduction::product: return as(T{}, [](auto x, auto y) { return x * y; });
    // A NaN compares false with everything: as y it is taken anyway, as x by the second question.
    case Reduction::min:
      return as(Ordered{}, [](auto x, auto y) {
        const auto least = x < y ? x : y;
        return x == x ? least : x;
      });
    case Reduction::max:
      return as(Ordered{}, [](auto x, auto y) {
        const auto most = x > y ? x : y;
        return x == x ? most : x;
      });
  }
}

// The 16-bit types, a block at a time in f32.
template <void (*widen)(float*, const std::uint16_t*, std::int64_t),
          void (*narrow)(std::uint16_t*, const float*, std::int64_t)>
void reduce_narrow(Reduction reduction, std::byte* to, const std::byte* a, const std::byte* b, std::int64_t count) {
  constexpr std::int64_t kBlock = 512;
  alignas(64) float x[kBlock], y[kBlock];
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const std::int64_t n = count - i < kBlock ? count - i : kBlock;
    widen(x, reinterpret_cast<const std::uint16_t*>(a) + i, n);
    widen(y, reinterpret_cast<const std::uint16_t*>(b) + i, n);
    reduce_numbers<float, float>(reduction, reinterpret_cast<std::byte*>(x), reinterpret_cast<const std::byte*>(x),
                                 reinterpret_cast<const std::byte*>(y), n);
    narrow(reinterpret_cast<std::uint16_t*>(to) + i, x, n);
  }
}

typedef std::uint32_t Words __attribute__((vector_size(LAMINA_VECTOR_BYTES), aligned(1), may_alias));
typedef std::uint16_t Halves __attribute__((vector_size(LAMINA_VECTOR_BYTES / 2), aligned(1), may_alias));
constexpr std::int64_t kWords = LAMINA_VECTOR_BYTES / 4;

void widen_bf16(float* to, const std::uint16_t* from, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kWords <= count; i += kWords) {
    const Halves bits = *reinterpret_cast<const Halves*>(from + i);
    *reinterpret_cast<Words*>(to + i) = __builtin_convertvector(bits, Words) << 16;
  }
  for (; i < count; ++i) {
    BFloat16 x;
    __builtin_memcpy(&x.bits, from + i, sizeof x.bits);
    to[i] = static_cast<float>(x);
  }
}

// Rounds to nearest even; a NaN stays one.
void narrow_bf16(std::uint16_t* to, const float* from, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kWords <= count; i += kWords) {
    const Words u = *reinterpret_cast<const Words*>(from + i);
    const Words rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const Words bits = (u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded;
    *reinterpret_cast<Halves*>(to + i) = __builtin_convertvector(bits, Halves);
  }
  for (; i < count; ++i) {
    const BFloat16 x(from[i]);
    __builtin_memcpy(to + i, &x.bits, sizeof x.bits);
  }
}

void widen_f16(float* to, const std::uint16_t* from, std::int64_t count) {
  std::int64_t i = 0;
#if LAMINA_HAS_F16C
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < count; ++i) {
    Half x;
    __builtin_memcpy(&x.bits, from + i, sizeof x.bits);
    to[i] = static_cast<float>(x);
  }
}

void narrow_f16(std::uint16_t* to, const float* from, std::int64_t count) {
  std::int64_t i = 0;
#if LAMINA_HAS_F16C
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#endif
  for (; i < count; ++i) {
    const Half x(from[i]);
    __builtin_memcpy(to + i, &x.bits, sizeof x.bits);
  }
}

void reduce_any(DType dtype, Reduction reduction, std::byte* to, const std::byte* a, const std::byte* b,
                std::int64_t count) {
  switch (dtype) {
    case DType::f32: return reduce_numbers<float, float>(reduction, to, a, b, count);
    case DType::f64: return reduce_numbers<double, double>(reduction, to, a, b, count);
    case DType::f16: return reduce_narrow<widen_f16, narrow_f16>(reduction, to, a, b, count);
    case DType::bf16: return reduce_narrow<widen_bf16, narrow_bf16>(reduction, to, a, b, count);
    case DType::i32: return reduce_numbers<std::uint32_t, std::int32_t>(reduction, to, a, b, count);
    case DType::i64: return reduce_numbers<std::uint64_t, std::int64_t>(reduction, to, a, b, count);
    case DType::u8:
    case DType::boolean: return reduce_numbers<std::uint8_t, std::uint8_t>(reduction, to, a, b, count);
  }
}
