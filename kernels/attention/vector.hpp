// Attention by panels of kGemmNr queries: lanes are queries. Scores are computed transposed, (keys x queries) = K Q^T,
// so that the softmax runs down the rows without sums over lanes, and the probabilities are at once the right operand
// of (features x queries) = V^T P. K and V are read where they are.
#include "lamina/kernels/cpu/simd/gemm.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"

inline constexpr std::int64_t kKeys = 128;  // a block: its probabilities stay in the first-level cache
inline constexpr std::int64_t kPanelsATask = 4;
inline constexpr float kLogZero = -3.40282347e38f;  // the logarithm of nothing's sum: finite, so that differences are

template <int kRows, int kVectors>
[[gnu::noinline]] void multiply_rows(std::int64_t steps, const float* a, std::int64_t line_stride,
                                     std::int64_t k_stride, const float* b, std::int64_t b_stride, float* c,
                                     std::int64_t c_stride, bool add) {
  gemm_micro<kRows, kVectors>(steps, a, line_stride, k_stride, b, b_stride, c, c_stride, add);
}
template <int kVectors, int kRows = kGemmMr>
void multiply_some(int rows, std::int64_t steps, const float* a, std::int64_t line_stride, std::int64_t k_stride,
                   const float* b, std::int64_t b_stride, float* c, std::int64_t c_stride, bool add) {
  if (rows == kRows) {
    return multiply_rows<kRows, kVectors>(steps, a, line_stride, k_stride, b, b_stride, c, c_stride, add);
  }
  if constexpr (kRows > 1) {
    multiply_some<kVectors, kRows - 1>(rows, steps, a, line_stride, k_stride, b, b_stride, c, c_stride, add);
  }
}

/// C (rows x kVectors registers) = (add ? C : 0) + A B, any number of rows, in groups of about the same height.
template <int kVectors = 2>
[[gnu::noinline]] void multiply(std::int64_t rows, std::int64_t steps, const float* a, std::int64_t line_stride,
                                std::int64_t k_stride, const float* b, std::int64_t b_stride, float* c,
                                std::int64_t c_stride, bool add) {
  const std::int64_t groups = (rows + kGemmMr - 1) / kGemmMr;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t height = rows / groups + (g < rows % groups ? 1 : 0);
    multiply_some<kVectors>(static_cast<int>(height), steps, a, line_stride, k_stride, b, b_stride, c, c_stride, add);
    a += height * line_stride;
    c += height * c_stride;
  }
}

/// A (length x features) matrix of one head.
template <class T>
struct Head {
  const T* data;
  std::int64_t row, column;  // strides
};
template <class T>
LAMINA_INLINE Head<T> head_of(const Operand& o, std::int64_t head) {
  const std::int64_t heads = o.shape()[1];
  return {o.as<const T>() + head / heads * o.stride(0) + head % heads * o.stride(1), o.stride(2), o.stride(3)};
}
LAMINA_INLINE const float* statistics_of(const Operand& o, std::int64_t head) {
  const std::int64_t heads = o.shape()[1];
  return o.as<const float>() + head / heads * o.stride(0) + head % heads * o.stride(1);
}

/// Keys or values as f32: where they are, or converted into `copy` (length x features).
template <class T>
LAMINA_INLINE Head<float> as_floats(Head<T> h, std::int64_t length, std::int64_t features, float* copy) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return h;
  } else {
    for (std::int64_t i = 0; i < length; ++i) {
      const T* from = h.data + i * h.row;
      float* to = copy + i * features;
      std::int64_t c = 0;
      if (h.column == 1) {
        for (; c + kLanes <= features; c += kLanes) store(to + c, Lanes<T>::load(from + c));
      }
      for (; c < features; ++c) to[c] = Lanes<T>::get(from + c * h.column);
    }
    return {copy, features, 1};
  }
}

/// (features x queries) -> rows of a dense (queries x features) result; row c of `panel` times factor per query.
template <class T>
[[gnu::noinline]] void store_panel(const float* panel, const vf* factor, T* to, std::int64_t queries,
                                   std::int64_t features) {
  for (std::int64_t half = 0; half * kLanes < queries; ++half) {
    for (std::int64_t c = 0; c < features; c += kLanes) {
      vf square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] = c + i < features ? load(panel + (c + i) * kGemmNr + half * kLanes) * factor[half] : vf{};
      }
      transpose(square);
      for (std::int64_t i = 0; i < kLanes && half * kLanes + i < queries; ++i) {
        store_part(to + (half * kLanes + i) * features + c, square[i], features - c);
      }
    }
  }
}

/// Sets the scores of keys that queries do not see to `value`: row j of `scores` is key first_key + j, lane i query
/// first_query + i.
LAMINA_INLINE void mask_future(float* scores, std::int64_t first_key, std::int64_t keys, std::int64_t first_query,
                               float value) {
  for (std::int64_t j = first_query < first_key ? 0 : first_query - first_key + 1; j < keys; ++j) {
    for (int half = 0; half < 2; ++half) {
      const vi query = lane_numbers() + broadcast(static_cast<std::int32_t>(half * kLanes));
      const vi hidden = query < broadcast(static_cast<std::int32_t>(first_key + j - first_query));
      float* at = scores + j * kGemmNr + half * kLanes;
      store(at, hidden ? broadcast(value) : load(at));
    }
  }
}

LAMINA_INLINE void scale_panel(float* panel, std::int64_t rows, float factor) {
  for (std::int64_t i = 0; i < rows * kGemmNr; i += kLanes) store(panel + i, load(panel + i) * factor);
}

/// exp(x), and 0 below the normal range: hidden keys are common, and results that underflow slow the processor down.
LAMINA_INLINE vf probability_of(vf x) {
  const vf y = exp(max(broadcast(-87.0f), x));
  return x < -87.0f ? vf{} : y;
}

/// One panel of queries. Scratch: scores (kKeys), query and sums (features each), rows of kGemmNr.
template <class T>
void attend(Head<T> q, Head<float> k, Head<float> v, std::int64_t first, std::int64_t queries, std::int64_t keys,
            std::int64_t features, bool causal, float scale, float* scores, float* query, float* sums, T* y,
            float* lse) {
  pack_panel<kGemmNr>(query, q.data + first * q.row, q.row, q.column, queries, features);
  scale_panel(query, features, scale);
  const vf nothing = broadcast(-__builtin_inff());
  vf largest[2] = {nothing, nothing}, total[2] = {};
  const std::int64_t end = causal && first + queries < keys ? first + queries : keys;
  for (std::int64_t i = 0; i < features * kGemmNr; i += kLanes) store(sums + i, vf{});
  for (std::int64_t j = 0; j < end; j += kKeys) {
    const std::int64_t some = end - j < kKeys ? end - j : kKeys;
    multiply(some, features, k.data + j * k.row, k.row, k.column, query, kGemmNr, scores, kGemmNr, false);
    if (causal) mask_future(scores, j, some, first, -__builtin_inff());
    for (int half = 0; half < 2; ++half) {
      float* const at = scores + half * kLanes;
      vf top = largest[half];
      for (std::int64_t i = 0; i < some; ++i) top = max(load(at + i * kGemmNr), top);
      const vf base = top == nothing ? vf{} : top;
      const vf shrink = probability_of(largest[half] - base);
      vf sum{};
      for (std::int64_t i = 0; i < some; ++i) {
        const vf p = probability_of(load(at + i * kGemmNr) - base);
        store(at + i * kGemmNr, p);
        sum = sum + p;
      }
      total[half] = total[half] * shrink + sum;
      largest[half] = top;
      if (j > 0) {
        float* const out = sums + half * kLanes;
        for (std::int64_t c = 0; c < features; ++c) store(out + c * kGemmNr, load(out + c * kGemmNr) * shrink);
      }
    }
    multiply(features, some, v.data + j * v.row, v.column, v.row, scores, kGemmNr, sums, kGemmNr, true);
  }
  vf factor[2];
  for (int half = 0; half < 2; ++half) {
    factor[half] = total[half] > 0.0f ? 1.0f / total[half] : (total[half] == 0.0f ? vf{} : total[half]);
    const vf log_sum = total[half] == 0.0f ? broadcast(kLogZero) : largest[half] + log(total[half]);
    if (queries > half * kLanes) store_part(lse + first + half * kLanes, log_sum, queries - half * kLanes);
  }
  store_panel(sums, factor, y + first * features, queries, features);
}

template <class T>
void attention(const Launch<Attention::Attrs>& launch) {
  const Shape& shape = launch.in[0].shape();
  const std::int64_t heads = shape[0] * shape[1], length = shape[2], features = shape[3];
  const std::int64_t keys = launch.in[1].shape()[2];
  if (heads * length == 0) return;
  const auto scale = static_cast<float>(attention_scale(launch.attrs, features));
  constexpr bool kCopies = sizeof(T) != sizeof(float);
  // Blocks of a few panels; with keys to convert, of a whole head.
  const std::int64_t block = kCopies ? length : kPanelsATask * kGemmNr;
  const std::int64_t blocks = (length + block - 1) / block;
  auto run = [&](std::int64_t task) {
    const std::int64_t head = task / blocks;
    const std::int64_t copies = kCopies ? 2 * keys * features : 0;
    const Scratch scratch(launch.pool,
                          sizeof(float) * static_cast<std::size_t>((kKeys + 2 * features) * kGemmNr + copies));
    float* const scores = scratch.floats();
    float* const query = scores + kKeys * kGemmNr;
    float* const sums = query + features * kGemmNr;
    float* const copy = sums + features * kGemmNr;
    const Head<float> k = as_floats(head_of<T>(launch.in[1], head), keys, features, copy);
    const Head<float> v = as_floats(head_of<T>(launch.in[2], head), keys, features, copy + copies / 2);
    const std::int64_t first = task % blocks * block, end = first + block < length ? first + block : length;
    for (std::int64_t i = first; i < end; i += kGemmNr) {
      attend(head_of<T>(launch.in[0], head), k, v, i, end - i < kGemmNr ? end - i : kGemmNr, keys, features,
             launch.attrs.causal, scale, scores, query, sums, launch.out[0].as<T>() + head * length * features,
             launch.out[1].as<float>() + head * length);
    }
  };
  if (heads * blocks == 1) return run(0);
  launch.executor.run(heads * blocks, run);
}

/// Rows first..first+rows of a head as f32, `padded` columns apart, zeros after the last feature.
template <class T>
[[gnu::noinline]] void copy_rows(Head<T> h, std::int64_t first, std::int64_t rows, std::int64_t features, float* to,
                                 std::int64_t padded) {
  for (std::int64_t i = 0; i < rows; ++i, to += padded) {
    const T* from = h.data + (first + i) * h.row;
    if (h.column == 1) {
      for (std::int64_t c = 0; c < padded; c += kLanes) store(to + c, load_part(from + c, features - c));
    } else {
      for (std::int64_t c = 0; c < padded; ++c) to[c] = c < features ? Lanes<T>::get(from + c * h.column) : 0.0f;
    }
  }
}

/// One head. dk and dv are summed over panels of queries in their order.
template <class T>
void attend_back(const Launch<AttentionGrad::Attrs>& launch, std::int64_t head, float scale) {
  const Shape& shape = launch.in[1].shape();
  const std::int64_t length = shape[2], features = shape[3], keys = launch.in[2].shape()[2];
  const std::int64_t padded = (features + kLanes - 1) / kLanes * kLanes;
  const bool causal = launch.attrs.causal;
  const Head<T> dy = head_of<T>(launch.in[0], head), q = head_of<T>(launch.in[1], head);
  const Head<T> y = head_of<T>(launch.in[4], head);
  const float* const lse = statistics_of(launch.in[5], head);
  const std::int64_t lse_stride = launch.in[5].stride(2);
  const float* const dlse = launch.in.size() == 7 ? statistics_of(launch.in[6], head) : nullptr;
  const std::int64_t dlse_stride = launch.in.size() == 7 ? launch.in[6].stride(2) : 0;

  const std::int64_t copies = sizeof(T) == sizeof(float) ? 0 : 2 * keys * features;
  const std::int64_t size = (2 * kKeys + 4 * features + 2 * padded) * kGemmNr + 2 * keys * padded + copies;
  const Scratch scratch(launch.pool, sizeof(float) * static_cast<std::size_t>(size));
  float* at = scratch.floats();
  auto take = [&](std::int64_t floats) {
    float* const p = at;
    at += floats;
    return p;
  };
  float *const p = take(kKeys * kGemmNr), *const ds = take(kKeys * kGemmNr);
  float *const q_panel = take(features * kGemmNr), *const dy_panel = take(features * kGemmNr);
  float *const y_panel = take(features * kGemmNr), *const dq_panel = take(features * kGemmNr);
  float *const q_rows = take(padded * kGemmNr), *const dy_rows = take(padded * kGemmNr);
  float *const dk = take(keys * padded), *const dv = take(keys * padded);
  const Head<float> k = as_floats(head_of<T>(launch.in[2], head), keys, features, at);
  const Head<float> v = as_floats(head_of<T>(launch.in[3], head), keys, features, at + copies / 2);
  for (std::int64_t i = 0; i < keys * padded; i += kLanes) store(dk + i, vf{});
  for (std::int64_t i = 0; i < keys * padded; i += kLanes) store(dv + i, vf{});

  for (std::int64_t first = 0; first < length; first += kGemmNr) {
    const std::int64_t queries = length - first < kGemmNr ? length - first : kGemmNr;
    pack_panel<kGemmNr>(q_panel, q.data + first * q.row, q.row, q.column, queries, features);
    pack_panel<kGemmNr>(dy_panel, dy.data + first * dy.row, dy.row, dy.column, queries, features);
    pack_panel<kGemmNr>(y_panel, y.data + first * y.row, y.row, y.column, queries, features);
    scale_panel(q_panel, features, scale);
    copy_rows(q, first, queries, features, q_rows, padded);
    copy_rows(dy, first, queries, features, dy_rows, padded);
    // Queries that are not there, or see nothing, get probabilities of 0.
    vf base[2], delta[2] = {};
    for (int half = 0; half < 2; ++half) {
      base[half] = broadcast(__builtin_inff());
      for (int i = 0; i < kLanes; ++i) {
        const std::int64_t row = half * kLanes + i;
        if (row >= queries) continue;
        const float value = lse[(first + row) * lse_stride];
        if (!(value <= kLogZero)) base[half][i] = value;
        if (dlse != nullptr) delta[half][i] = -dlse[(first + row) * dlse_stride];
      }
      vf sum{};
      for (std::int64_t c = 0; c < features; ++c) {
        const std::int64_t offset = c * kGemmNr + half * kLanes;
        sum = fma(load(dy_panel + offset), load(y_panel + offset), sum);
      }
      delta[half] = delta[half] + sum;
    }
    for (std::int64_t i = 0; i < features * kGemmNr; i += kLanes) store(dq_panel + i, vf{});
    const std::int64_t end = causal && first + queries < keys ? first + queries : keys;
    for (std::int64_t j = 0; j < end; j += kKeys) {
      const std::int64_t some = end - j < kKeys ? end - j : kKeys;
      multiply(some, features, k.data + j * k.row, k.row, k.column, q_panel, kGemmNr, p, kGemmNr, false);
      if (causal) mask_future(p, j, some, first, -__builtin_inff());
      multiply(some, features, v.data + j * v.row, v.row, v.column, dy_panel, kGemmNr, ds, kGemmNr, false);
      for (std::int64_t i = 0; i < some; ++i) {
        for (int half = 0; half < 2; ++half) {
          const std::int64_t offset = i * kGemmNr + half * kLanes;
          const vf probability = probability_of(load(p + offset) - base[half]);
          store(p + offset, probability);
          store(ds + offset, probability * (load(ds + offset) - delta[half]) * scale);
        }
      }
      multiply(features, some, k.data + j * k.row, k.column, k.row, ds, kGemmNr, dq_panel, kGemmNr, true);
      for (std::int64_t c = 0; c < padded; c += kGemmNr) {
        float *const dk_at = dk + j * padded + c, *const dv_at = dv + j * padded + c;
        if (padded - c > kLanes) {
          multiply<2>(some, queries, ds, kGemmNr, 1, q_rows + c, padded, dk_at, padded, true);
          multiply<2>(some, queries, p, kGemmNr, 1, dy_rows + c, padded, dv_at, padded, true);
        } else {
          multiply<1>(some, queries, ds, kGemmNr, 1, q_rows + c, padded, dk_at, padded, true);
          multiply<1>(some, queries, p, kGemmNr, 1, dy_rows + c, padded, dv_at, padded, true);
        }
      }
    }
    const vf one[2] = {broadcast(1.0f), broadcast(1.0f)};
    store_panel(dq_panel, one, launch.out[0].as<T>() + (head * length + first) * features, queries, features);
  }
  T *const dk_out = launch.out[1].as<T>() + head * keys * features, *const dv_out =
                                                                        launch.out[2].as<T>() + head * keys * features;
  for (std::int64_t j = 0; j < keys; ++j) {
    for (std::int64_t c = 0; c < features; c += kLanes) {
      store_part(dk_out + j * features + c, load(dk + j * padded + c), features - c);
      store_part(dv_out + j * features + c, load(dv + j * padded + c), features - c);
    }
  }
}

template <class T>
void attention_grad(const Launch<AttentionGrad::Attrs>& launch) {
  const Shape& shape = launch.in[1].shape();
  const auto scale = static_cast<float>(attention_scale(launch.attrs, shape[3]));
  launch.executor.run(shape[0] * shape[1], [&](std::int64_t head) { attend_back<T>(launch, head, scale); });
}
