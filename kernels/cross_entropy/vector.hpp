#include "lamina/kernels/cpu/simd/in_floats.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/cpu/simd/reduce.hpp"

/// A vector's worth of rows: their logarithms are taken together.
struct RowBatch {
  float total[kLanes];
  float at_label[kLanes];  // less the maximum
  double all[kLanes];      // sum of the logits less the maximum; for smoothing
};

void cross_entropy(const Launch<CrossEntropy::Attrs>& launch) {
  const CrossEntropyAttrs& attrs = launch.attrs;
  const std::int64_t rows = launch.in[1].count();
  const std::int64_t classes = launch.in[0].shape().back(1);
  const float* logits = launch.in[0].as<const float>();
  const std::int64_t* labels = launch.in[1].as<const std::int64_t>();
  float* statistics = launch.out[2].as<float>();
  const std::int64_t count = count_labels(CrossEntropy::name, launch.in[1], classes, attrs.ignore_index);
  const bool smooth = attrs.label_smoothing > 0;
  const double share = classes > 0 ? attrs.label_smoothing / static_cast<double>(classes) : 0;
  const std::int64_t rows_a_block = block_of(classes, kReduceBlock / 2);
  const std::int64_t blocks = ceil_div(rows, rows_a_block);
  const Scratch scratch = Scratch::of_doubles(launch.pool, blocks);
  double* partial = scratch.doubles();
  run_blocks(launch.executor, blocks, [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows ? (block + 1) * rows_a_block : rows;
    double loss = 0;
    RowBatch batch;
    for (std::int64_t begin = block * rows_a_block; begin < end; begin += kLanes) {
      const std::int64_t n = end - begin < kLanes ? end - begin : kLanes;
      for (std::int64_t k = 0; k < kLanes; ++k) batch.total[k] = 1;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t r = begin + k;
        const float* x = logits + r * classes;
        Choosing<LargerOf>::Wide largest;
        reduce_run<Choosing<LargerOf>, 1>(
            &largest, classes, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
              v[0] = load_part(x + i, m, -__builtin_inff());
            });
        const float maximum = largest.total();
        Summing::Wide sums[2];
        if (smooth) {
          reduce_run<Summing, 2>(
              sums, classes, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
                v[0] = exp(load_part(x + i, m, -__builtin_inff()) - maximum);
                v[1] = load_part(x + i, m, maximum) - maximum;
              });
          batch.all[k] = sums[1].total();
        } else {
          reduce_run<Summing, 1>(
              sums, classes, [&](std::int64_t i, std::int64_t m, vf * v) __attribute__((always_inline)) {
                v[0] = exp(load_part(x + i, m, -__builtin_inff()) - maximum);
              });
        }
        batch.total[k] = static_cast<float>(sums[0].total());
        const bool counts = labels[r] != attrs.ignore_index;
        batch.at_label[k] = counts ? x[labels[r]] - maximum : 0;
        statistics[2 * r] = maximum;
        statistics[2 * r + 1] = batch.total[k];
      }
      float log_total[kLanes];
      store(log_total, log(load(batch.total)));
      for (std::int64_t k = 0; k < n; ++k) {
        if (labels[begin + k] == attrs.ignore_index) continue;
        const auto log_of_row = static_cast<double>(log_total[k]);
        double row = log_of_row - static_cast<double>(batch.at_label[k]);
        if (smooth) {
          const double all = static_cast<double>(classes) * log_of_row - batch.all[k];
          row = (1 - attrs.label_smoothing) * row + share * all;
        }
        loss += row;
      }
    }
    partial[block] = loss;
  });
  double loss = 0;
  for (std::int64_t b = 0; b < blocks; ++b) loss += partial[b];
  if (attrs.mean && count > 0) loss /= static_cast<double>(count);
  *launch.out[0].as<float>() = static_cast<float>(loss);
  *launch.out[1].as<std::int64_t>() = count;
}

void cross_entropy_grad(const Launch<CrossEntropyGrad::Attrs>& launch) {
  const CrossEntropyAttrs& attrs = launch.attrs;
  const std::int64_t rows = launch.in[2].count();
  const std::int64_t classes = launch.in[1].shape().back(1);
  const float* logits = launch.in[1].as<const float>();
  const std::int64_t* labels = launch.in[2].as<const std::int64_t>();
  const std::int64_t count = *launch.in[3].as<const std::int64_t>();
  const float* statistics = launch.in[4].as<const float>();
  count_labels(CrossEntropyGrad::name, launch.in[2], classes, attrs.ignore_index);
  double scale = static_cast<double>(*launch.in[0].as<const float>());
  if (attrs.mean && count > 0) scale /= static_cast<double>(count);
  const double share = classes > 0 ? attrs.label_smoothing / static_cast<double>(classes) : 0;
  const vf shared = broadcast(static_cast<float>(-scale * share));
  const std::int64_t rows_a_block = block_of(classes, kReduceBlock / 2);
  run_blocks(launch.executor, ceil_div(rows, rows_a_block), [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows ? (block + 1) * rows_a_block : rows;
    for (std::int64_t r = block * rows_a_block; r < end; ++r) {
      const float* x = logits + r * classes;
      float* dx = launch.out[0].as<float>() + r * classes;
      if (labels[r] == attrs.ignore_index) {
        for_each_vector(classes, [&](std::int64_t i, std::int64_t m) { store_part(dx + i, vf{}, m); });
        continue;
      }
      const float maximum = statistics[2 * r];
      const double factor = scale / static_cast<double>(statistics[2 * r + 1]);
      const vf factors = broadcast(static_cast<float>(factor));
      for_each_vector(
          classes, [&](std::int64_t i, std::int64_t m) __attribute__((always_inline)) {
            store_part(dx + i, fma(exp(load_part(x + i, m) - maximum), factors, shared), m);
          });
      // In doubles: where the label is nearly certain, little is left.
      const std::int64_t label = labels[r];
      const auto e = static_cast<double>(exp(broadcast(x[label] - maximum))[0]);
      dx[label] = static_cast<float>(factor * e - scale * share - scale * (1 - attrs.label_smoothing));
    }
  });
}

// Of any storage.
template <class T>
void cross_entropy_in(const Launch<CrossEntropy::Attrs>& launch) {
  in_floats<T>(launch, cross_entropy);
}
template <class T>
void cross_entropy_grad_in(const Launch<CrossEntropyGrad::Attrs>& launch) {
  in_floats<T>(launch, cross_entropy_grad);
}
