#include "lamina/core/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/host_device.hpp"

namespace lamina {
namespace {

using test::host_device;

class TensorTest : public ::testing::Test {
 protected:
  Device device = host_device();
  Tensor counting(const Shape& shape) const {
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    std::iota(values.begin(), values.end(), 0.0f);
    return Tensor::from(device, shape, values);
  }
};

TEST_F(TensorTest, undefined) {
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_EQ(to_string(t), "undefined");
  EXPECT_THROW(to_vector<float>(t), DeviceError);
  EXPECT_THROW(host<float>(t), DeviceError);
  EXPECT_THROW(t.to(device), DeviceError);
  EXPECT_THROW(t.item(), ShapeError);
  EXPECT_THROW(Tensor::empty(Device(), {2}), DeviceError);
}

TEST_F(TensorTest, from_values_and_back) {
  const Tensor t = Tensor::from(device, {2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  EXPECT_EQ(t.dtype(), DType::f32);
  EXPECT_EQ(to_string(t), "f32(2,3) on host");
  EXPECT_EQ(to_vector<float>(t), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(to_vector<std::int64_t>(t), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(to_vector<bool>(Tensor::from(device, {2}, {true, false})), (std::vector<bool>{true, false}));
  EXPECT_THROW(Tensor::from(device, {2, 2}, {1.0f}), ShapeError);
  EXPECT_THROW(Tensor::from(device, {0}, {1.0f}), ShapeError);
}

TEST_F(TensorTest, empty_and_zeros) {
  const Tensor zeros = Tensor::zeros(device, {3, 5}, DType::f64);
  for (const double v : host<double>(zeros)) EXPECT_EQ(v, 0);
  const Tensor raw = Tensor::empty(device, {7});
  for (const float v : host<float>(raw)) EXPECT_TRUE(std::isnan(v));  // the pool poisons
  EXPECT_EQ(Tensor::zeros(device, {0, 3}).count(), 0);
  EXPECT_TRUE(to_vector<float>(Tensor::empty(device, {4, 0})).empty());
  EXPECT_THROW(Tensor::empty(device, {std::int64_t{1} << 62}, DType::f64), ShapeError);  // bytes overflow
}

TEST_F(TensorTest, item) {
  EXPECT_EQ(Tensor::from(device, {}, {2.5f}).item(), 2.5);
  EXPECT_EQ(Tensor::from(device, {1, 1}, {std::int64_t{-3}}).item(), -3);
  EXPECT_THROW(counting({2}).item(), ShapeError);
}

TEST_F(TensorTest, conversions_of_to_vector) {
  const Tensor t = Tensor::from(device, {3}, {1.5f, -2.25f, 300.0f});
  EXPECT_EQ(to_vector<double>(t), (std::vector<double>{1.5, -2.25, 300}));
  EXPECT_EQ(static_cast<float>(to_vector<Half>(t)[1]), -2.25f);
  EXPECT_EQ(static_cast<float>(to_vector<BFloat16>(t)[2]), 300.0f);
  EXPECT_EQ(to_vector<std::int32_t>(t)[1], -2);  // toward zero
  const Tensor half = Tensor::from(device, {1}, {Half(0.5f)});
  EXPECT_EQ(to_vector<float>(half)[0], 0.5f);
}

TEST_F(TensorTest, handles_share_and_know_when_they_are_alone) {
  Tensor a = counting({4});
  EXPECT_TRUE(a.sole());
  const Tensor b = a;
  EXPECT_FALSE(a.sole());
  EXPECT_TRUE(a.shares_storage(b));
  EXPECT_TRUE(a.slice(0, 1, 2).shares_storage(b));
  EXPECT_FALSE(a.shares_storage(counting({4})));
}

TEST_F(TensorTest, host_access_checks_the_type) {
  const Tensor t = counting({4});
  EXPECT_EQ(host<float>(t)[3], 3.0f);
  EXPECT_THROW(host<double>(t), DTypeError);
  EXPECT_THROW(host<std::int32_t>(t), DTypeError);
  try {
    host<double>(t);
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "host: f32(4) on host accessed as f64");
  }
}

TEST_F(TensorTest, host_access_needs_a_dense_layout) {
  const Tensor t = counting({3, 4});
  EXPECT_THROW(host<float>(t.transpose(0, 1)), LayoutError);
  EXPECT_THROW(host<float>(t.slice(1, 0, 2)), LayoutError);
  EXPECT_EQ(host<float>(t.slice(0, 1, 3))[0], 4.0f);  // rows are dense
  EXPECT_EQ(host<float>(t.slice(0, 1, 3)).size(), 8u);
}

TEST_F(TensorTest, writing_needs_the_only_handle) {
  Tensor t = counting({4});
  host_mut<float>(t)[0] = 9;
  EXPECT_EQ(host<float>(t)[0], 9);
  Tensor other = t;
  EXPECT_THROW(host_mut<float>(t), AliasError);
  EXPECT_THROW(host_mut<float>(other), AliasError);
  other = Tensor();
  host_mut<float>(t)[1] = 8;
  Tensor view = t.slice(0, 1, 2);
  EXPECT_THROW(host_mut<float>(view), AliasError);
  EXPECT_THROW(host_mut<double>(t), DTypeError);
  t = Tensor();
  EXPECT_EQ(host_mut<float>(view)[0], 8);  // a view may write once it is alone
}

TEST_F(TensorTest, devices_the_host_cannot_reach) {
  const Device far = host_device({.host_accessible = false, .storage = true});
  const Tensor near = counting({2, 3});
  const Tensor there = near.to(far);
  EXPECT_THROW(host<float>(there), DeviceError);
  EXPECT_EQ(to_vector<float>(there), to_vector<float>(near));  // through a copy
  EXPECT_EQ(to_vector<float>(there.to(device)), to_vector<float>(near));
  const Device farther = host_device({.host_accessible = false, .storage = true});
  EXPECT_EQ(to_vector<float>(there.to(farther)), to_vector<float>(near));
}

TEST_F(TensorTest, moving_between_devices) {
  const Device other = host_device();
  const Tensor a = counting({2, 3});
  const Tensor b = a.to(other);
  EXPECT_FALSE(a.shares_storage(b));
  EXPECT_FALSE(a.device() == b.device());
  EXPECT_EQ(to_vector<float>(b), to_vector<float>(a));
  EXPECT_TRUE(a.to(device).shares_storage(a));  // already there
  EXPECT_THROW(a.transpose(0, 1).to(other), LayoutError);
  EXPECT_THROW(a.with(other), DeviceError);
  EXPECT_EQ(Tensor::empty(device, {0}).to(other).count(), 0);
}

TEST_F(TensorTest, queues_of_handles) {
  const Device second = device.with(device.make_queue());
  const Tensor a = counting({3});
  const Tensor b = a.with(second);
  EXPECT_TRUE(a.shares_storage(b));
  EXPECT_EQ(&b.device().queue(), &second.queue());
  EXPECT_EQ(&b.slice(0, 0, 1).device().queue(), &second.queue());  // views stay on it
  EXPECT_NE(&a.device().queue(), &second.queue());
}

TEST_F(TensorTest, memory_is_given_back_and_counted) {
  EXPECT_EQ(device.memory().live_bytes, 0);
  {
    const Tensor a = counting({256});
    const Tensor b = a.slice(0, 3, 9);
    EXPECT_EQ(device.memory().live_bytes, 1024);
  }
  EXPECT_EQ(device.memory().live_bytes, 0);
  EXPECT_EQ(device.memory().peak_bytes, 1024);
}

TEST_F(TensorTest, shapes_without_storage) {
  const Device shapes = host_device({.host_accessible = false, .storage = false});
  const Tensor huge = Tensor::empty(shapes, {std::int64_t{1} << 40, 1000});
  EXPECT_EQ(huge.count(), (std::int64_t{1} << 40) * 1000);
  EXPECT_EQ(huge.slice(0, 5, 6).shape(), (Shape{1, 1000}));
  EXPECT_THROW(to_vector<float>(huge), DeviceError);
}

}  // namespace
}  // namespace lamina
