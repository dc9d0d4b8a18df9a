// Scratch memory: from the pool, so that the second call takes nothing from the system, and all of it given back.
#include <gtest/gtest.h>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/matmul/op.hpp"

namespace lamina {
namespace {

TEST(Scratch, ComesFromThePoolAndGoesBack) {
  const Device device = cpu_device({.threads = 2});
  const Tensor a = Tensor::zeros(device, {500, 600}), b = Tensor::zeros(device, {600, 400});
  // Which blocks two threads hold at once is theirs to decide: after some calls no new ones are needed.
  for (int i = 0; i < 20; ++i) matmul(a, b);
  const MemoryStats before = device.memory();
  for (int i = 0; i < 5; ++i) matmul(a, b);
  const MemoryStats after = device.memory();
  EXPECT_LE(after.system_calls - before.system_calls, 1);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

TEST(Scratch, OutOfMemoryLeavesTheDeviceUsable) {
  const Device device = cpu_device({.threads = 2, .memory_limit = std::int64_t{3} << 20});
  const Tensor a = Tensor::zeros(device, {400, 400}), b = Tensor::zeros(device, {400, 400});
  const MemoryStats before = device.memory();
  EXPECT_THROW(
      {
        const Tensor c = matmul(a, b);
        const Tensor d = matmul(a, c);
        matmul(a, d);
      },
      OutOfMemory);
  EXPECT_EQ(device.memory().live_bytes, before.live_bytes);
  EXPECT_EQ(matmul(a.slice(0, 0, 8), b).shape(), (Shape{8, 400}));
}

}  // namespace
}  // namespace lamina
