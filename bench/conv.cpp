// Convolution on one thread: name, pass, milliseconds of processor time (minimum of the repeats), GFLOP/s.
// bench/conv_torch.py is the peer and prints the same rows. LAMINA_ISA=avx2 limits the instruction set.
//   conv [part of a name] [seconds a row] [part of a pass]
#include <cstdlib>
#include <string_view>

#include "lamina/bench/rows.hpp"
#include "lamina/kernels/conv2d/op.hpp"
#include "lamina/kernels/cpu/device.hpp"

namespace {

using namespace lamina;

struct Case {
  const char* name;
  std::int64_t n, c, h, o, kernel, stride, padding, groups;
};
constexpr Case kCases[] = {
    {"stem1_28", 64, 1, 28, 16, 3, 1, 1, 1},    {"stem3_32", 64, 3, 32, 16, 3, 1, 1, 1},
    {"c16_32", 64, 16, 32, 16, 3, 1, 1, 1},     {"c16_28", 64, 16, 28, 16, 3, 1, 1, 1},
    {"c16_c32_s2", 64, 16, 32, 32, 3, 2, 1, 1}, {"c32_16", 64, 32, 16, 32, 3, 1, 1, 1},
    {"c32_c64_s2", 64, 32, 16, 64, 3, 2, 1, 1}, {"c64_8", 64, 64, 8, 64, 3, 1, 1, 1},
    {"c64_7", 64, 64, 7, 64, 3, 1, 1, 1},       {"c64_56", 8, 64, 56, 64, 3, 1, 1, 1},
    {"p256_64", 8, 256, 56, 64, 1, 1, 0, 1},    {"p16_c32_s2", 64, 16, 32, 32, 1, 2, 0, 1},
    {"c512_7", 8, 512, 7, 512, 3, 1, 1, 1},     {"depthwise64_28", 16, 64, 28, 64, 3, 1, 1, 64},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.25;
  const std::string_view only_pass = argc > 3 ? argv[3] : "";
  const Device device = cpu_device({.threads = 1});
  for (const Case& c : kCases) {
    if (std::string_view(c.name).find(only) == std::string_view::npos) continue;
    const Conv2dAttrs attrs{{c.stride, c.stride}, {c.padding, c.padding}, {1, 1}, c.groups};
    const Tensor x = normal(device, {c.n, c.c, c.h, c.h}, 1);
    const Tensor w = normal(device, {c.o, c.c / c.groups, c.kernel, c.kernel}, 2);
    const Tensor dy = normal(device, conv2d(x, w, attrs).shape(), 3);
    const double flops = static_cast<double>(2 * dy.count() * (c.c / c.groups) * c.kernel * c.kernel);
    auto row = [&](std::string_view pass, auto f) {
      if (pass.find(only_pass) == std::string_view::npos) return;
      print_row(c.name, pass, best(f, seconds), flops, "GFLOP/s");
    };
    row("forward", [&] { conv2d(x, w, attrs); });
    row("input_grad", [&] { apply<Conv2dInputGrad>({attrs, {c.h, c.h}}, {}, dy, w); });
    row("weight_grad", [&] { apply<Conv2dWeightGrad>({attrs, {c.kernel, c.kernel}}, {}, dy, x); });
  }
}
