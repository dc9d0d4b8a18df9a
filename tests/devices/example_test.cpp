// What any device has to pass, and what the example device can be told to do wrong (docs/add-a-device.md).
#include <gtest/gtest.h>

#include <cmath>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/example/device.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/models/data/loader.hpp"
#include "lamina/models/data/open.hpp"
#include "lamina/models/registry.hpp"
#include "lamina/nn/optimizer.hpp"
#include "tests/support/devices.hpp"

namespace lamina {
namespace {

// On every kind of device present: tests/support/devices.hpp.
class AnyDevice : public ::testing::TestWithParam<test::DeviceKind> {
 protected:
  Device make(int which = 0, std::int64_t memory_limit = 0) const { return GetParam().make(which, memory_limit); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, AnyDevice, ::testing::ValuesIn(test::device_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(AnyDevice, HostAccessIsATypedError) {
  const Device d = make();
  EXPECT_EQ(d.kind(), GetParam().name);
  if (d.host_accessible()) GTEST_SKIP() << "the host's own memory";
  Tensor t = Tensor::from(d, {2}, {1.0f, 2.0f});
  EXPECT_THROW(host<float>(t), DeviceError);
  EXPECT_THROW(host_mut<float>(t), DeviceError);
  EXPECT_EQ(to_vector<float>(t), (std::vector<float>{1, 2}));
}

TEST_P(AnyDevice, CopiesBothWays) {
  const Device d = make(2), e = make(), cpu = cpu_device({.threads = 1});
  const Tensor t = Tensor::from(cpu, {3}, {1.0f, 2.0f, 3.0f});
  EXPECT_EQ(to_vector<float>(t.to(d).to(e).to(cpu)), (std::vector<float>{1, 2, 3}));
  const Tensor y = t.to(d) + t.to(d);
  EXPECT_EQ(host<float>(y.to(cpu))[2], 6);
  EXPECT_THROW(t + y, DeviceError);  // nothing is copied behind your back
}

TEST_P(AnyDevice, ErrorsSurfaceAtTheWaitAndLeaveItUsable) {
  const Device d = make(2);
  const Tensor table = Tensor::from(d, {4, 2}, std::vector<float>(8, 1.0f));
  const Tensor ids = Tensor::from(d, {2}, {std::int64_t{1}, std::int64_t{9}});
  // At the latest at the wait; on a synchronous device in the call.
  EXPECT_THROW(to_vector<float>(embedding(ids, table)), IndexError);
  d.synchronize();  // thrown once
  EXPECT_EQ(to_vector<float>(table + table)[0], 2);
}

TEST_P(AnyDevice, OutOfMemoryLeavesItUsable) {
  const Device d = make(0, 1 << 20);
  EXPECT_THROW(Tensor::empty(d, {1 << 20}), OutOfMemory);
  const Tensor t = Tensor::zeros(d, {1000});
  EXPECT_EQ(to_vector<float>(t)[999], 0);
}

TEST(ExampleDevice, WorkIsAsynchronous) {
  const Device d = example_device({.max_delay_us = 2000});
  const Tensor table = Tensor::from(d, {4, 2}, std::vector<float>(8, 1.0f));
  const Tensor ids = Tensor::from(d, {2}, {std::int64_t{1}, std::int64_t{9}});
  const Tensor rows = embedding(ids, table);  // returns before it fails
  EXPECT_THROW(to_vector<float>(rows), IndexError);
}

// A chain of steps that hands tensors from queue to queue.
std::vector<float> two_queues(const ExampleOptions& options) {
  const Device a = example_device(options);
  const Device b = a.with(a.make_queue());
  Tensor x = Tensor::from(a, {64}, std::vector<float>(64, 1.0f));
  for (int i = 0; i < 10; ++i) {
    const Tensor y = (x + x).with(b);  // made on a, used on b
    const Tensor z = (y * y).with(a);  // made on b, used on a
    x = z * 0.25 + (x.with(b) * 0.5).with(a);
  }
  return to_vector<float>(x);
}

TEST(ExampleDevice, TwoQueuesWithRandomDelaysGiveOneResult) {
  const std::vector<float> expected = two_queues({});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(two_queues({.max_delay_us = 200, .seed = seed}), expected) << "seed " << seed;
  }
}

TEST(ExampleDevice, ForgettingToWaitShows) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the fault it plants is a data race";
#endif
  const std::vector<float> expected = two_queues({});
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    wrong += two_queues({.max_delay_us = 200, .seed = seed, .wait_for_events = false}) == expected ? 0 : 1;
  }
  EXPECT_GT(wrong, 0);
}

TEST_P(AnyDevice, MemoryFreedOnOneQueueIsNotReusedUnderAnother) {
  const Device a = make(2);
  const Device b = a.with(a.make_queue());
  for (int i = 0; i < 30; ++i) {
    Tensor sum;
    {
      const Tensor x = Tensor::from(a, {1000}, std::vector<float>(1000, static_cast<float>(i)));
      sum = lamina::sum(x.with(b));  // b still reads x when x is dropped
    }
    const Tensor other = Tensor::from(a, {1000}, std::vector<float>(1000, -1.0f));
    EXPECT_EQ(sum.item(), 1000.0 * i);
  }
}

#ifdef __SANITIZE_THREAD__
constexpr std::uint64_t kSteps = 6;  // ten seconds each
#else
constexpr std::uint64_t kSteps = 20;
#endif

std::vector<double> losses(const Device& device, const std::string& model_spec, const std::string& data_spec) {
  const auto data = open_dataset(data_spec);
  nn::Builder builder{.device = device, .seed = 1};
  const auto model =
      models::make_model(model_spec, {.example = data->input().shape, .classes = data->classes()}, builder);
  const auto optimizer = nn::make_optimizer(model->parameters(), {.name = "sgd"});
  Loader loader(data, device, {.batch = 16, .seed = 1, .threads = 0});
  std::vector<double> found;
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    const Batch batch = loader.next();
    Gradients gradients;
    {
      Tape tape(Tape::Mode::record, {.seed = 1, .step = step});
      const Var loss = cross_entropy((*model)(tape.constant(batch.inputs)), batch.labels);
      found.push_back(loss.value().item());
      gradients = tape.backward(loss);
    }
    optimizer->step(gradients, 0.05);
  }
  return found;
}

void expect_follows_cpu(const Device& device, const std::string& model, const std::string& data) {
  const auto cpu = losses(cpu_device({.threads = 2}), model, data);
  const auto found = losses(device, model, data);
  for (std::size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(cpu[i], found[i], 1e-4) << "step " << i;
  EXPECT_LT(cpu.back(), cpu.front());
}

TEST_P(AnyDevice, MlpFollowsTheCpu) {
  expect_follows_cpu(make(), "mlp:widths=64x2", "synthetic:shape=1x14x14,classes=10,examples=512");
}

TEST_P(AnyDevice, ResNet8FollowsTheCpu) {
  expect_follows_cpu(make(), "resnet8", "synthetic:shape=1x14x14,classes=10,examples=512");
}

}  // namespace
}  // namespace lamina
