// Small ops against libtorch in one process, interleaved: recording and running add of 8 floats, and a tiny forward and
// backward (8x64 times 64x64, tanh, sum). Prints medians and the ratio's spread.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "lamina/autograd/tape.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"

namespace {

template <class F>
double nanoseconds(int count, F&& work) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) work();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / count;
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

template <class Ours, class Theirs>
void compare(const char* name, int count, Ours&& ours, Theirs&& theirs) {
  std::vector<double> a, b, ratio;
  for (int round = 0; round < 25; ++round) {
    a.push_back(nanoseconds(count, ours));
    b.push_back(nanoseconds(count, theirs));
    ratio.push_back(a.back() / b.back());
  }
  std::printf("%-28s %8.0f ns  libtorch %8.0f ns  ratio %.3f [%.3f-%.3f]\n", name, median(a), median(b), median(ratio),
              *std::min_element(ratio.begin(), ratio.end()), *std::max_element(ratio.begin(), ratio.end()));
}

}  // namespace

int main() {
  using namespace lamina;
  at::set_num_threads(1);
  const Device cpu = cpu_device({.threads = 1});
  const Tensor a = Tensor::from(cpu, {8}, std::vector<float>(8, 1.0f));
  const auto ta = torch::ones({8}, torch::requires_grad());
  const auto tb = torch::ones({8});
  compare(
      "add of 8, recorded", 2000,
      [&, tape = Tape(), x = Var(), uses = 0]() mutable {
        if (uses++ % 250 == 0) {
          tape = Tape();
          x = tape.input(a);
        }
        const Var sum = x + a;
      },
      [&] { auto sum = ta + tb; });
  const Tensor x = Tensor::from(cpu, {8, 64}, std::vector<float>(512, 0.1f));
  const Param w(Tensor::from(cpu, {64, 64}, std::vector<float>(4096, 0.1f)));
  const auto tx = torch::full({8, 64}, 0.1f, torch::requires_grad());
  const auto tw = torch::full({64, 64}, 0.1f, torch::requires_grad());
  compare(
      "tiny forward and backward", 300,
      [&] {
        Tape tape;
        const Var loss = sum(tanh(matmul(tape.input(x), tape.param(w))));
        tape.backward(loss);
      },
      [&] {
        auto loss = torch::tanh(torch::matmul(tx, tw)).sum();
        torch::autograd::grad({loss}, {tx, tw});
      });
  return 0;
}
