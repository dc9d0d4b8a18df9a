// Two ways through x (N,C,space). Where a channel's runs are long, lanes go along them. Where they are shorter than a
// vector (dense layers have space 1), lanes go across the C * space columns of a batch row, and the columns of a
// channel are added at the end.
#include "lamina/kernels/cpu/simd/in_floats.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

inline constexpr std::int64_t kColumns = 512;  // of a tile, in the second way

LAMINA_INLINE bool by_columns(const Channels& c) { return c.space < kLanes; }

/// How the sums of a tensor that has elements are cut: tiles of channels, each in segments of what is summed.
struct Cuts {
  std::int64_t tile;  // channels
  std::int64_t tiles;
  std::int64_t segment;  // elements of a channel; batch rows in the second way
  std::int64_t segments;
};
LAMINA_INLINE Cuts cuts_of(const Channels& c) {
  Cuts cuts;
  const std::int64_t fits = kColumns / c.space;
  cuts.tile = !by_columns(c) ? 1 : c.channels < fits ? c.channels : fits;
  cuts.tiles = ceil_div(c.channels, cuts.tile);
  cuts.segment = by_columns(c) ? ceil_div(kReduceBlock / 2, cuts.tile * c.space) : kReduceBlock / 2;
  cuts.segments = ceil_div(by_columns(c) ? c.batch : c.per_channel(), cuts.segment);
  return cuts;
}
/// Elements a channel has in segment s.
LAMINA_INLINE std::int64_t segment_count(const Channels& c, const Cuts& cuts, std::int64_t s) {
  const std::int64_t all = by_columns(c) ? c.batch : c.per_channel();
  const std::int64_t n = all - s * cuts.segment < cuts.segment ? all - s * cuts.segment : cuts.segment;
  return by_columns(c) ? n * c.space : n;
}

/// K sums over a segment of each channel of a tile, to sums[channel in tile * K + k]. f(at, m, const vf* p, vf* v)
/// gives the terms of the m elements at offset `at`, 0 from lane m on; p are the channel's P parameters. A parameter
/// array starts at the tile's first channel, or holds a value for each of its columns.
template <class R, int K, int P, class F>
LAMINA_INLINE void segment_sums(const Channels& c, const Cuts& cuts, std::int64_t s, std::int64_t t,
                                const float* const* params, double* sums, F f) {
  const std::int64_t lo = s * cuts.segment;
  if (!by_columns(c)) {
    vf p[P + 1];
    for (int k = 0; k < P; ++k) p[k] = broadcast(params[k][0]);
    typename Summing::Wide wide[K];
    const std::int64_t hi = lo + segment_count(c, cuts, s);
    for (std::int64_t i = lo; i < hi;) {
      const std::int64_t begin = i % c.space;
      const std::int64_t count = c.space - begin < hi - i ? c.space - begin : hi - i;
      const std::int64_t at = (i / c.space * c.channels + t) * c.space + begin;
      reduce_run<R, K>(
          wide,
          count, [&](std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) { f(at + j, m, p, v); });
      i += count;
    }
    for (int k = 0; k < K; ++k) sums[k] = wide[k].total();
    return;
  }
  const std::int64_t first = t * cuts.tile;
  const std::int64_t channels = c.channels - first < cuts.tile ? c.channels - first : cuts.tile;
  double totals[K][kColumns + kLanes];
  double* to[K];
  for (int k = 0; k < K; ++k) {
    to[k] = totals[k];
    for (std::int64_t j = 0; j < channels * c.space + kLanes; ++j) totals[k][j] = 0;
  }
  const std::int64_t rows = segment_count(c, cuts, s) / c.space;
  reduce_rows<R, K>(
      to, rows,
      channels * c.space, [&](std::int64_t r, std::int64_t j, std::int64_t m, vf * v) __attribute__((always_inline)) {
        vf p[P + 1];
        for (int k = 0; k < P; ++k) p[k] = load_part(params[k] + j, m);
        f((lo + r) * c.width() + first * c.space + j, m, p, v);
      });
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (int k = 0; k < K; ++k) {
      double total = 0;
      for (std::int64_t j = 0; j < c.space; ++j) total += totals[k][channel * c.space + j];
      sums[channel * K + k] = total;
    }
  }
}

/// Channel parameters; in the second way repeated for each column.
struct Parameters {
  float* values;
  std::int64_t stride;  // from one parameter's values to the next
  const Channels* c;

  Parameters(const Channels& channels, float* memory) : values(memory), stride(channels.width()), c(&channels) {}
  void set(int k, std::int64_t channel, double value) {
    const std::int64_t n = by_columns(*c) ? c->space : 1;
    for (std::int64_t i = 0; i < n; ++i) values[k * stride + channel * n + i] = static_cast<float>(value);
  }
};

/// f(at, m, const vf* p) for all vectors of x; p are the channel's P parameters.
template <int P, class F>
LAMINA_INLINE void for_each_channel_vector(const Channels& c, const Parameters& params, Executor& executor, F f) {
  const bool columns = by_columns(c);
  const std::int64_t length = columns ? c.width() : c.space;
  const std::int64_t rows = columns ? c.batch : c.batch * c.channels;
  const std::int64_t rows_a_block = block_of(length, kReduceBlock / 2);
  run_blocks(executor, ceil_div(rows, rows_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows ? (block + 1) * rows_a_block : rows;
    for (std::int64_t r = block * rows_a_block; r < end; ++r) {
      vf p[P];
      if (columns) {
        for_each_vector(
            length, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) {
              for (int k = 0; k < P; ++k) p[k] = load_part(params.values + k * params.stride + j, m);
              f(r * length + j, m, p);
            });
      } else {
        for (int k = 0; k < P; ++k) p[k] = broadcast(params.values[k * params.stride + r % c.channels]);
        for_each_vector(
            length, [&](std::int64_t j, std::int64_t m) __attribute__((always_inline)) { f(r * length + j, m, p); });
      }
    }
  });
}

/// The sums of a whole tensor: segment by segment into partial[(segment * C + channel) * K + k].
template <int K, class F>
LAMINA_INLINE void partial_sums(const Channels& c, const Cuts& cuts, Executor& executor, double* partial, F segment) {
  const std::int64_t items = cuts.tiles * cuts.segments;
  const std::int64_t items_a_block = block_of(cuts.tile * segment_count(c, cuts, 0), kReduceBlock / 2);
  run_blocks(executor, ceil_div(items, items_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * items_a_block < items ? (block + 1) * items_a_block : items;
    for (std::int64_t n = block * items_a_block; n < end; ++n) {
      const std::int64_t t = n / cuts.segments, s = n % cuts.segments;
      segment(s, t, partial + (s * c.channels + t * cuts.tile) * K);
    }
  });
}

void batch_norm(const Launch<BatchNorm::Attrs>& launch) {
  const Channels c = channels_of(launch.in[0].shape());
  const float* x = launch.in[0].as<const float>();
  const float* gamma = launch.in[1].as<const float>();
  const float* beta = launch.in[2].as<const float>();
  float* y = launch.out[0].as<float>();
  float* means = launch.out[1].as<float>();
  float* variances = launch.out[2].as<float>();
  if (c.per_channel() == 0 || c.channels == 0) {
    for (std::int64_t i = 0; i < c.channels; ++i) means[i] = variances[i] = 0;
    return;
  }
  const Cuts cuts = cuts_of(c);
  // Of each segment: the mean, and the sum of the squares of the deviations from it, which loses nothing however large
  // the mean is. Segments are joined by Chan's formula. The mean is summed in doubles: where values cancel, what floats
  // round off is large beside it.
  const Scratch partial_memory = Scratch::of_doubles(launch.pool, 2 * cuts.segments * c.channels);
  double* partial = partial_memory.doubles();
  partial_sums<2>(c, cuts, launch.executor, partial, [&](std::int64_t s, std::int64_t t, double* to) {
    const std::int64_t first = t * cuts.tile;
    const std::int64_t channels = c.channels - first < cuts.tile ? c.channels - first : cuts.tile;
    const auto count = static_cast<double>(segment_count(c, cuts, s));
    double sums[kColumns];
    segment_sums<SummingExactly, 1, 0>(
        c, cuts, s, t, nullptr,
        sums, [&](std::int64_t at, std::int64_t m, const vf*, vf* v) __attribute__((always_inline)) {
          v[0] = load_part(x + at, m);
        });
    float coarse[kColumns];
    const std::int64_t repeats = by_columns(c) ? c.space : 1;
    for (std::int64_t j = 0; j < channels * repeats; ++j) coarse[j] = static_cast<float>(sums[j / repeats] / count);
    const float* params[1] = {coarse};
    double squares[kColumns];
    segment_sums<Summing, 1, 1>(
        c, cuts, s, t, params,
        squares, [&](std::int64_t at, std::int64_t m, const vf* p, vf* v) __attribute__((always_inline)) {
          // Lanes from m on are 0: p is one value in the first way and 0 there in the second.
          const vf deviation = load_part(x + at, m, p[0][kLanes - 1]) - p[0];
          v[0] = deviation * deviation;
        });
    for (std::int64_t channel = 0; channel < channels; ++channel) {
      const double mean = sums[channel] / count;
      const double rest = mean - static_cast<double>(coarse[channel * repeats]);
      to[2 * channel] = mean;
      to[2 * channel + 1] = squares[channel] - count * rest * rest;
    }
  });
  const Scratch memory = Scratch::of_floats(launch.pool, 3 * c.width());
  Parameters params(c, memory.floats());
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    double n = 0, mean = 0, squares = 0;
    for (std::int64_t s = 0; s < cuts.segments; ++s) {
      const double* p = partial + (s * c.channels + channel) * 2;
      const auto count = static_cast<double>(segment_count(c, cuts, s));
      const double delta = p[0] - mean;
      const double all = n + count;
      squares += p[1] + delta * delta * n * count / all;
      mean += delta * count / all;
      n = all;
    }
    const double variance = squares > 0 || squares != squares ? squares / n : 0;
    const double scale = static_cast<double>(gamma[channel]) / __builtin_sqrt(variance + launch.attrs.epsilon);
    means[channel] = static_cast<float>(mean);
    variances[channel] = static_cast<float>(variance);
    // (x - mean) scale + beta, with the mean as two floats: one would be too coarse where it is large.
    const float coarse = static_cast<float>(mean);
    params.set(0, channel, static_cast<double>(coarse));
    params.set(1, channel, scale);
    params.set(2, channel, static_cast<double>(beta[channel]) - (mean - static_cast<double>(coarse)) * scale);
  }
  for_each_channel_vector<3>(
      c, params, launch.executor, [&](std::int64_t at, std::int64_t m, const vf* p) __attribute__((always_inline)) {
        store_part(y + at, fma(load_part(x + at, m) - p[0], p[1], p[2]), m);
      });
}

/// Sums over each channel of dy and dy (x - mean), in doubles, to sums[channel * 2 + k].
LAMINA_INLINE void gradient_sums(const Channels& c, const float* dy, const float* x, const float* mean,
                                 Executor& executor, MemoryPool& pool, double* sums) {
  for (std::int64_t i = 0; i < 2 * c.channels; ++i) sums[i] = 0;
  if (c.per_channel() == 0 || c.channels == 0) return;
  const Cuts cuts = cuts_of(c);
  const Scratch partial_memory = Scratch::of_doubles(pool, 2 * cuts.segments * c.channels);
  const Scratch memory = Scratch::of_floats(pool, c.width());
  Parameters params(c, memory.floats());
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    params.set(0, channel, static_cast<double>(mean[channel]));
  }
  double* partial = partial_memory.doubles();
  partial_sums<2>(c, cuts, executor, partial, [&](std::int64_t s, std::int64_t t, double* to) {
    const float* tile[1] = {params.values + t * cuts.tile * (by_columns(c) ? c.space : 1)};
    segment_sums<Summing, 2, 1>(
        c, cuts, s, t, tile,
        to, [&](std::int64_t at, std::int64_t m, const vf* p, vf* v) __attribute__((always_inline)) {
          v[0] = load_part(dy + at, m);
          v[1] = v[0] * (load_part(x + at, m) - p[0]);
        });
  });
  for (std::int64_t s = 0; s < cuts.segments; ++s) {
    for (std::int64_t i = 0; i < 2 * c.channels; ++i) sums[i] += partial[s * c.channels * 2 + i];
  }
}

void batch_norm_grad(const Launch<BatchNormGrad::Attrs>& launch) {
  const Channels c = channels_of(launch.in[1].shape());
  const float* dy = launch.in[0].as<const float>();
  const float* x = launch.in[1].as<const float>();
  const float* gamma = launch.in[2].as<const float>();
  const float* mean = launch.in[3].as<const float>();
  const float* variance = launch.in[4].as<const float>();
  float* dx = launch.out[0].as<float>();
  const bool statistics = launch.in.size() == 7;  // have cotangents
  const Scratch sums_memory = Scratch::of_doubles(launch.pool, 2 * c.channels);
  double* sums = sums_memory.doubles();
  gradient_sums(c, dy, x, mean, launch.executor, launch.pool, sums);
  const Scratch memory = Scratch::of_floats(launch.pool, 4 * c.width());
  Parameters params(c, memory.floats());
  const double count = c.per_channel() > 0 ? static_cast<double>(c.per_channel()) : 1;
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    const double rstd = 1 / __builtin_sqrt(static_cast<double>(variance[channel]) + launch.attrs.epsilon);
    const double scale = static_cast<double>(gamma[channel]) * rstd;
    const double dbeta = sums[2 * channel];
    const double dgamma = sums[2 * channel + 1] * rstd;
    launch.out[1].as<float>()[channel] = static_cast<float>(dgamma);
    launch.out[2].as<float>()[channel] = static_cast<float>(dbeta);
    // scale (dy - dbeta / count - (x - mean) rstd dgamma / count) + (dmean + 2 (x - mean) dvariance) / count
    params.set(0, channel, static_cast<double>(mean[channel]));
    params.set(1, channel, scale);
    const double dmean = statistics ? static_cast<double>(launch.in[5].as<const float>()[channel]) : 0;
    const double dvariance = statistics ? static_cast<double>(launch.in[6].as<const float>()[channel]) : 0;
    params.set(2, channel, (2 * dvariance - scale * rstd * dgamma) / count);
    params.set(3, channel, (dmean - scale * dbeta) / count);
  }
  for_each_channel_vector<4>(
      c, params, launch.executor, [&](std::int64_t at, std::int64_t m, const vf* p) __attribute__((always_inline)) {
        store_part(dx + at, fma(load_part(dy + at, m), p[1], fma(load_part(x + at, m) - p[0], p[2], p[3])), m);
      });
}

void batch_norm_inference(const Launch<BatchNormInference::Attrs>& launch) {
  const Channels c = channels_of(launch.in[0].shape());
  const float* x = launch.in[0].as<const float>();
  float* y = launch.out[0].as<float>();
  const Scratch memory = Scratch::of_floats(launch.pool, 3 * c.width());
  Parameters params(c, memory.floats());
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    const double variance = static_cast<double>(launch.in[4].as<const float>()[channel]);
    params.set(0, channel, static_cast<double>(launch.in[3].as<const float>()[channel]));
    params.set(
        1, channel,
        static_cast<double>(launch.in[1].as<const float>()[channel]) / __builtin_sqrt(variance + launch.attrs.epsilon));
    params.set(2, channel, static_cast<double>(launch.in[2].as<const float>()[channel]));
  }
  for_each_channel_vector<3>(
      c, params, launch.executor, [&](std::int64_t at, std::int64_t m, const vf* p) __attribute__((always_inline)) {
        store_part(y + at, fma(load_part(x + at, m) - p[0], p[1], p[2]), m);
      });
}

void batch_norm_inference_grad(const Launch<BatchNormInferenceGrad::Attrs>& launch) {
  const Channels c = channels_of(launch.in[1].shape());
  const float* dy = launch.in[0].as<const float>();
  float* dx = launch.out[0].as<float>();
  const Scratch sums_memory = Scratch::of_doubles(launch.pool, 2 * c.channels);
  double* sums = sums_memory.doubles();
  gradient_sums(c, dy, launch.in[1].as<const float>(), launch.in[3].as<const float>(), launch.executor, launch.pool,
                sums);
  const Scratch memory = Scratch::of_floats(launch.pool, c.width());
  Parameters params(c, memory.floats());
  for (std::int64_t channel = 0; channel < c.channels; ++channel) {
    const double variance = static_cast<double>(launch.in[4].as<const float>()[channel]);
    const double rstd = 1 / __builtin_sqrt(variance + launch.attrs.epsilon);
    const double scale = static_cast<double>(launch.in[2].as<const float>()[channel]) * rstd;
    const double dbeta = sums[2 * channel];
    const double dgamma = sums[2 * channel + 1] * rstd;
    launch.out[1].as<float>()[channel] = static_cast<float>(dgamma);
    launch.out[2].as<float>()[channel] = static_cast<float>(dbeta);
    launch.out[3].as<float>()[channel] = static_cast<float>(-scale * dbeta);
    launch.out[4].as<float>()[channel] = static_cast<float>(-0.5 * scale * rstd * dgamma);
    params.set(0, channel, scale);
  }
  for_each_channel_vector<1>(
      c, params, launch.executor, [&](std::int64_t at, std::int64_t m, const vf* p) __attribute__((always_inline)) {
        store_part(dx + at, load_part(dy + at, m) * p[0], m);
      });
}

// Of any storage.
template <class T>
void batch_norm_in(const Launch<BatchNorm::Attrs>& launch) {
  in_floats<T>(launch, batch_norm);
}
template <class T>
void batch_norm_grad_in(const Launch<BatchNormGrad::Attrs>& launch) {
  in_floats<T>(launch, batch_norm_grad);
}
template <class T>
void batch_norm_inference_in(const Launch<BatchNormInference::Attrs>& launch) {
  in_floats<T>(launch, batch_norm_inference);
}
template <class T>
void batch_norm_inference_grad_in(const Launch<BatchNormInferenceGrad::Attrs>& launch) {
  in_floats<T>(launch, batch_norm_inference_grad);
}
