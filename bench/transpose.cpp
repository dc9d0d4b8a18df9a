// Transposes of large matrices against std::memcpy of as many bytes, one thread, in turn: the ratio of memcpy's time to
// ours (above 1 the transpose is faster), as median and, in brackets, least and largest of the rounds.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "lamina/bench/rows.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/permute/op.hpp"

int main() {
  using namespace lamina;
  const Device device = cpu_device({.threads = 1});
  for (const std::int64_t n : {1024, 4095, 4096}) {
    for (const DType dtype : {DType::f16, DType::f32, DType::f64}) {
      const Tensor x = Tensor::zeros(device, {n, n}, dtype);
      Tensor y = permute(x, {1, 0});
      std::vector<double> ratios;
      for (int round = 0; round < 9; ++round) {
        const double copy =
            best([&] { std::memcpy(y.raw(), x.raw(), static_cast<std::size_t>(n * n) * size_of(dtype)); }, 0.02);
        y = Tensor();
        const double ours = best([&] { y = permute(x, {1, 0}); }, 0.02);
        ratios.push_back(copy / ours);
      }
      std::sort(ratios.begin(), ratios.end());
      fmt::print("{} x {} {:4} {:.2f} [{:.2f} {:.2f}]\n", n, n, name_of(dtype), ratios[4], ratios[0], ratios[8]);
    }
  }
}
