// A shared object that has lamina inside and one function outside.
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"

extern "C" __attribute__((visibility("default"))) float consumer_twice(float x) {
  const auto device = lamina::cpu_device({.threads = 1});
  const auto a = lamina::Tensor::from(device, {1}, {x});
  return lamina::host<float>(a + a)[0];
}
