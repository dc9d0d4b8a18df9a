// Matrix products against OpenBLAS in one process on one thread, interleaved: GFLOP/s and the ratio of times.
//
//   OPENBLAS_NUM_THREADS=1 gemm_openblas [--isa avx512|avx2|baseline] [--sizes 64,512x3072x768,...] [--repeats 9]
//
// With --isa avx2 compare under OPENBLAS_CORETYPE=Haswell. The ratio is OpenBLAS' time over ours, above 1 we are
// faster: of the medians, then the quartiles of the ratios of neighbouring runs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cpu/gemm.hpp"
#include "lamina/kernels/cpu/scratch.hpp"

#define LAMINA_VECTOR_CODE "lamina/bench/gemm_vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                 const float* b, int ldb, float beta, float* c, int ldc);
void openblas_set_num_threads(int threads);
char* openblas_get_corename();
}

namespace {

struct Size {
  int m, n, k;
};

std::vector<Size> parse_sizes(std::string text) {
  std::vector<Size> sizes;
  text += ',';
  for (std::size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',')) {
    Size s{};
    const std::string one = text.substr(0, comma);
    if (std::sscanf(one.c_str(), "%dx%dx%d", &s.m, &s.n, &s.k) != 3)
      s = {std::stoi(one), std::stoi(one), std::stoi(one)};
    sizes.push_back(s);
    text.erase(0, comma + 1);
  }
  return sizes;
}

double seconds(const std::function<void()>& f, int times) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / times;
}

double quantile(std::vector<double> v, double q) {
  std::sort(v.begin(), v.end());
  return v[static_cast<std::size_t>(q * static_cast<double>(v.size() - 1) + 0.5)];
}

void compare(lamina::Isa isa, Size s, bool trans_a, bool trans_b, int repeats, lamina::MemoryPool& pool) {
  const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); };
  std::vector<float> a(count(s.m, s.k)), b(count(s.k, s.n)), c(count(s.m, s.n)), d(c.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7919 % 1009) / 1009 - 0.5f;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i * 104729 % 1013) / 1013 - 0.5f;
  lamina::ThreadPool one(1);
  const int lda = trans_a ? s.m : s.k, ldb = trans_b ? s.k : s.n;
  const std::function<void()> theirs = [&] {
    cblas_sgemm(101, trans_a ? 112 : 111, trans_b ? 112 : 111, s.m, s.n, s.k, 1, a.data(), lda, b.data(), ldb, 0,
                d.data(), s.n);
  };
  const std::function<void()> ours = [&] {
    const auto f = isa == lamina::Isa::avx512 ? lamina::avx512::product
                   : isa == lamina::Isa::avx2 ? lamina::avx2::product
                                              : lamina::baseline::product;
    f(s.m, s.n, s.k, a.data(), trans_a ? 1 : lda, trans_a ? lda : 1, b.data(), trans_b ? ldb : 1, trans_b ? 1 : ldb,
      c.data(), one, pool);
  };
  ours();
  theirs();
  double worst = 0;
  for (std::size_t i = 0; i < c.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(c[i] - d[i])));
  const double flops = 2.0 * s.m * s.n * s.k;
  const int times = std::max(1, static_cast<int>(2e-3 / std::max(1e-9, seconds(theirs, 1))));
  std::vector<double> t_ours, t_theirs, ratios;
  for (int r = 0; r < repeats; ++r) {
    t_ours.push_back(seconds(ours, times));
    t_theirs.push_back(seconds(theirs, times));
    ratios.push_back(t_theirs.back() / t_ours.back());
  }
  const double mine = quantile(t_ours, 0.5), other = quantile(t_theirs, 0.5);
  std::printf("%5dx%5dx%5d %c%c  %8.1f  %8.1f  %6.3f  [%.3f %.3f]  %.1e\n", s.m, s.n, s.k, trans_a ? 'T' : 'N',
              trans_b ? 'T' : 'N', flops / mine * 1e-9, flops / other * 1e-9, other / mine, quantile(ratios, 0.25),
              quantile(ratios, 0.75), worst);
}

}  // namespace

int main(int argc, char** argv) {
  std::string sizes = "64,128,256,512,768,1024,2048,512x3072x768", isa_name = "avx512";
  int repeats = 9;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--sizes") sizes = argv[i + 1];
    if (flag == "--repeats") repeats = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--isa") isa_name = argv[i + 1];
  }
  const lamina::Isa isa = isa_name == "avx512" ? lamina::Isa::avx512
                          : isa_name == "avx2" ? lamina::Isa::avx2
                                               : lamina::Isa::baseline;
  openblas_set_num_threads(1);
  const lamina::Device device = lamina::cpu_device({.threads = 1});
  std::printf("lamina %s against OpenBLAS %s, one thread, medians of %d\n", isa_name.c_str(), openblas_get_corename(),
              repeats);
  std::printf("   m     n     k        GFLOP/s   OpenBLAS  ratio  [quartiles]   largest difference\n");
  for (const Size& s : parse_sizes(sizes)) {
    for (const auto& [ta, tb] : {std::pair{false, false}, {false, true}, {true, false}}) {
      compare(isa, s, ta, tb, repeats, device.state()->pool);
    }
  }
}
