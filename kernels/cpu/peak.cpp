#include "lamina/kernels/cpu/peak.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/cpu/isa.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/cpu/peak_vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

template <class F>
double seconds_of(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

double measure_peak_flops(Isa isa, int threads) {
  if (isa == Isa::wide || !can_run(isa, CpuFeatures::read()))
    fail<ValueError>("peak", "{} does not run on this machine", name_of(isa));
  float (*rounds)(std::int64_t) = baseline::fma_rounds;
  double lanes = 4;
  if (isa == Isa::avx2) rounds = avx2::fma_rounds, lanes = 8;
  if (isa == Isa::avx512) rounds = avx512::fma_rounds, lanes = 16;
  ThreadPool pool(threads);
  constexpr std::int64_t kRounds = 2'000'000;
  double best = 0;
  std::vector<float> sink(static_cast<std::size_t>(threads));
  for (int i = 0; i < 5; ++i) {
    const double s = seconds_of(
        [&] { pool.run(threads, [&](std::int64_t t) { sink[static_cast<std::size_t>(t)] = rounds(kRounds); }); });
    best = std::max(best, 24.0 * lanes * static_cast<double>(kRounds) * threads / s);
  }
  return best;
}

double measure_bandwidth(int threads) {
  constexpr std::int64_t kCount = std::int64_t{64} << 20 >> 2;  // floats in all three arrays, about
  constexpr std::int64_t kEach = kCount / 3;
  constexpr std::int64_t kPart = std::int64_t{1} << 16;
  std::vector<float> a(kEach, 1), b(kEach, 2), c(kEach, 3);
  auto add = baseline::add_arrays;
  for (const Isa isa : usable_isas(CpuFeatures::read())) {
    if (isa == Isa::avx512) add = avx512::add_arrays;
    if (isa == Isa::avx2) add = avx2::add_arrays;
    break;
  }
  ThreadPool pool(threads);
  double best = 0;
  for (int i = 0; i < 7; ++i) {
    const double s = seconds_of([&] {
      pool.run((kEach + kPart - 1) / kPart, [&](std::int64_t p) {
        const std::int64_t lo = p * kPart;
        add(b.data() + lo, c.data() + lo, a.data() + lo, std::min(kPart, kEach - lo));
      });
    });
    best = std::max(best, 12.0 * static_cast<double>(kEach) / s);
  }
  return best;
}

}  // namespace lamina
