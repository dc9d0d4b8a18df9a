// Philox4x32-10 as core/rng.hpp has it, on several counters at a time. A counter's word is the low half of a 64-bit
// lane; what is in the high half does not matter to the 32 x 32 -> 64 bit products.

typedef std::uint64_t vl __attribute__((vector_size(4 * LAMINA_LANES)));
inline constexpr int kQuads = kLanes / 2;  // counters in a vector; each gives four words
inline constexpr int kBatch = 4 * kQuads;  // words of a batch of counters

LAMINA_INLINE vl broadcast(std::uint64_t x) { return x + vl{}; }
LAMINA_INLINE vl quad_numbers() {
#if LAMINA_LANES == 16
  return vl{0, 1, 2, 3, 4, 5, 6, 7};
#elif LAMINA_LANES == 8
  return vl{0, 1, 2, 3};
#else
  return vl{0, 1};
#endif
}

/// Products of the low halves.
LAMINA_INLINE vl multiply_low(vl a, vl b) {
#if LAMINA_REGISTER_LANES == 16
  return reinterpret_cast<vl>(_mm512_mul_epu32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#else
  union {
    vl v;
    vregister_int r[kRegisters];
  } x{a}, y{b};
  for (int i = 0; i < kRegisters; ++i) {
#if LAMINA_REGISTER_LANES == 8
    x.r[i] = _mm256_mul_epu32(x.r[i], y.r[i]);
#else
    x.r[i] = _mm_mul_epu32(x.r[i], y.r[i]);
#endif
  }
  return x.v;
#endif
}

/// The words of kQuads counters in order: quad after quad.
struct Words {
  vi first, second;
};
LAMINA_INLINE Words draw(vl example, vl quad, const DropoutPlan& plan) {
  vl c0 = quad, c1 = quad >> 32, c2 = example, c3 = example >> 32;
  std::uint32_t k0 = plan.key0, k1 = plan.key1;
  for (int round = 0; round < 10; ++round) {
    const vl p0 = multiply_low(c0, broadcast(std::uint64_t{0xD2511F53u}));
    const vl p1 = multiply_low(c2, broadcast(std::uint64_t{0xCD9E8D57u}));
    c0 = (p1 >> 32) ^ c1 ^ broadcast(std::uint64_t{k0});
    c2 = (p0 >> 32) ^ c3 ^ broadcast(std::uint64_t{k1});
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const vl low = broadcast(std::uint64_t{0xffffffffu});
  const vl a = (c0 & low) | (c1 << 32);
  const vl b = (c2 & low) | (c3 << 32);
#if LAMINA_LANES == 16
  return {reinterpret_cast<vi>(__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)),
          reinterpret_cast<vi>(__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15))};
#elif LAMINA_LANES == 8
  return {reinterpret_cast<vi>(__builtin_shufflevector(a, b, 0, 4, 1, 5)),
          reinterpret_cast<vi>(__builtin_shufflevector(a, b, 2, 6, 3, 7))};
#else
  return {reinterpret_cast<vi>(__builtin_shufflevector(a, b, 0, 2)),
          reinterpret_cast<vi>(__builtin_shufflevector(a, b, 1, 3))};
#endif
}
/// All ones where the element stays.
LAMINA_INLINE vi keeps(vi words, const DropoutPlan& plan) {
  return reinterpret_cast<vi>(reinterpret_cast<vu>(words) >> 8) >= broadcast(plan.threshold);
}

/// Elements [lo, hi) of an example; lo is a multiple of 4. x and y are at element lo.
template <class T>
void drop_row(const T* x, T* y, std::int64_t example, std::int64_t lo, std::int64_t hi, const DropoutPlan& plan) {
  const vl id = broadcast(static_cast<std::uint64_t>(example));
  vl quad = broadcast(static_cast<std::uint64_t>(lo / 4)) + quad_numbers();
  std::int64_t n = hi - lo;
  for (; n >= kBatch; n -= kBatch, x += kBatch, y += kBatch, quad += kQuads) {
    const Words words = draw(id, quad, plan);
    Lanes<T>::store(y, keeps(words.first, plan) ? Lanes<T>::load(x) * plan.scale : vf{});
    Lanes<T>::store(y + kLanes, keeps(words.second, plan) ? Lanes<T>::load(x + kLanes) * plan.scale : vf{});
  }
  if (n == 0) return;
  const Words words = draw(id, quad, plan);
  const std::int64_t m = n < kLanes ? n : kLanes;
  Lanes<T>::store(y, keeps(words.first, plan) ? Lanes<T>::load(x, m) * plan.scale : vf{}, m);
  if (n <= kLanes) return;
  x += kLanes;
  Lanes<T>::store(y + kLanes, keeps(words.second, plan) ? Lanes<T>::load(x, n - kLanes) * plan.scale : vf{},
                  n - kLanes);
}

/// Examples so small that a batch of counters holds several.
template <class T>
void drop_small(const T* x, T* y, std::int64_t example, std::int64_t examples, std::int64_t elements,
                const DropoutPlan& plan) {
  const std::int64_t quads = (elements + 3) / 4;
  const std::int64_t together = kQuads / quads;
  vl id{}, quad{};
  for (int i = 0; i < kQuads; ++i) {
    id[i] = static_cast<std::uint64_t>(i / quads);
    quad[i] = static_cast<std::uint64_t>(i % quads);
  }
  for (std::int64_t n = 0; n < examples; n += together) {
    const Words words = draw(broadcast(static_cast<std::uint64_t>(example + n)) + id, quad, plan);
    union {
      vi keep[2];
      std::int32_t element[kBatch];
    } mask{{keeps(words.first, plan), keeps(words.second, plan)}};
    const std::int64_t rows = examples - n < together ? examples - n : together;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t e = 0; e < elements; ++e, ++x, ++y) {
        Lanes<T>::put(y, mask.element[4 * quads * r + e] != 0 ? Lanes<T>::get(x) * plan.scale : 0.0f);
      }
    }
  }
}

template <class T>
void dropout(const Launch<Dropout::Attrs>& launch) {
  const std::int64_t count = launch.out[0].count();
  if (count == 0) return;
  const DropoutPlan plan = dropout_plan(launch.attrs);
  const std::int64_t examples = launch.out[0].shape()[0];
  const std::int64_t elements = count / examples;
  const T* x = launch.in[0].as<const T>();
  T* y = launch.out[0].as<T>();
  const std::int64_t chunks = ceil_div(elements, kElementwiseBlock);  // of an example
  const std::int64_t rows = block_of(elements, kElementwiseBlock);    // examples a block
  run_blocks(launch.executor, ceil_div(examples, rows) * chunks, [&](std::int64_t block) {
    const std::int64_t first = block / chunks * rows;
    const std::int64_t end = first + rows < examples ? first + rows : examples;
    const std::int64_t lo = block % chunks * kElementwiseBlock;
    const std::int64_t hi = lo + kElementwiseBlock < elements ? lo + kElementwiseBlock : elements;
    if (elements <= 2 * kQuads) {
      drop_small(x + first * elements, y + first * elements, plan.first_example + first, end - first, elements, plan);
      return;
    }
    for (std::int64_t n = first; n < end; ++n) {
      drop_row(x + n * elements + lo, y + n * elements + lo, plan.first_example + n, lo, hi, plan);
    }
  });
}
