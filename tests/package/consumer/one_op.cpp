// The smallest program with an engine in it.
#include <cstdio>

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/cpu/device.hpp"

int main() {
  const lamina::Device device = lamina::cpu_device({.threads = 1});
  const auto a = lamina::Tensor::from(device, {2, 2}, {1.0f, 2.0f, 3.0f, 4.0f});
  const auto b = lamina::Tensor::from(device, {2}, {10.0f, 20.0f});
  const lamina::Tensor c = a + b;
  const float expected[] = {11, 22, 13, 24};
  for (int i = 0; i < 4; ++i) {
    if (lamina::host<float>(c)[i] != expected[i]) return 1;
  }
  try {
    add(a, lamina::Tensor::zeros(device, {3}));
    return 2;
  } catch (const lamina::ShapeError& error) {
    std::puts(error.what());
  }
  return 0;
}
