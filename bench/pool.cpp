// Pooling on one thread: name, pass, milliseconds of processor time (minimum of the repeats), GB/s of x and y.
// bench/pool_torch.py is the peer and prints the same rows. LAMINA_ISA=avx2 limits the instruction set.
//   pool [part of a name] [seconds a row]
#include <cstdlib>
#include <string_view>

#include "lamina/bench/rows.hpp"
#include "lamina/kernels/avg_pool2d/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/max_pool2d/op.hpp"

namespace {

struct Case {
  const char* name;
  std::int64_t n, c, h, kernel, stride, padding;
};
constexpr Case kCases[] = {
    {"k2_s2_56", 8, 64, 56, 2, 2, 0},  {"k3_s2_56", 8, 64, 56, 3, 2, 1},  {"k3_s1_56", 8, 64, 56, 3, 1, 1},
    {"k2_s2_14", 8, 256, 14, 2, 2, 0}, {"k3_s2_14", 8, 256, 14, 3, 2, 1}, {"k3_s1_14", 8, 256, 14, 3, 1, 1},
};

}  // namespace

int main(int argc, char** argv) {
  using namespace lamina;
  const std::string_view only = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.25;
  const Device device = cpu_device({.threads = 1});
  for (const Case& c : kCases) {
    if (std::string_view(c.name).find(only) == std::string_view::npos) continue;
    const Window2d window{{c.kernel, c.kernel}, {c.stride, c.stride}, {c.padding, c.padding}};
    const AvgPool2dAttrs average{window, true};  // as PyTorch counts
    const Tensor x = normal(device, {c.n, c.c, c.h, c.h}, 1);
    const auto largest = apply<MaxPool2d>(window, {}, x);
    const Tensor dy = normal(device, largest[0].shape(), 2);
    const double bytes = 4.0 * static_cast<double>(x.count() + dy.count());
    auto row = [&](std::string_view pass, auto f) { print_row(c.name, pass, best(f, seconds), bytes, "GB/s"); };
    row("max", [&] { apply<MaxPool2d>(window, {}, x); });
    row("max_grad", [&] { apply<MaxPool2dGrad>({{c.h, c.h}}, {}, dy, largest[1]); });
    row("avg", [&] { avg_pool2d(x, average); });
    row("avg_grad", [&] { apply<AvgPool2dGrad>({average, {c.h, c.h}}, {}, dy); });
  }
}
