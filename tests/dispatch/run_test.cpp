#include "lamina/kernels/run.hpp"

#include <gtest/gtest.h>

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/gelu/op.hpp"
#include "lamina/kernels/shape_device.hpp"
#include "lamina/kernels/sum/op.hpp"
#include "lamina/kernels/table.hpp"
#include "tests/support/host_device.hpp"

namespace lamina {
namespace {

class RunTest : public ::testing::Test {
 protected:
  Device device = cpu_device({.threads = 1});
  Tensor a = Tensor::from(device, {2, 3}, {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f});
  Tensor b = Tensor::from(device, {3}, {10.0f, 20.0f, 30.0f});

  void into(std::span<Tensor> out, bool in_place = false) const {
    const Tensor* in[] = {&a, &b};
    run_into(record_of<Add>, &attrs, in, out, in_place);
  }
  template <class E>
  std::string message(std::span<Tensor> out, bool in_place = false) const {
    try {
      into(out, in_place);
    } catch (const E& e) {
      return e.what();
    }
    return "no error";
  }
  Add::Attrs attrs;
};

TEST_F(RunTest, into_given_outputs) {
  Tensor out = Tensor::empty(device, {2, 3});
  into({&out, 1});
  EXPECT_EQ(to_vector<float>(out), (std::vector<float>{11, 22, 33, 14, 25, 36}));
}

TEST_F(RunTest, into_outputs_that_do_not_fit) {
  Tensor wrong = Tensor::empty(device, {3, 2});
  EXPECT_EQ(message<ShapeError>({&wrong, 1}), "add: output 0: f32(3,2) on cpu given, f32(2,3) needed");
  Tensor other = Tensor::empty(device, {2, 3}, DType::f64);
  EXPECT_EQ(message<ShapeError>({&other, 1}), "add: output 0: f64(2,3) on cpu given, f32(2,3) needed");
  EXPECT_EQ(message<ShapeError>({}), "add: 0 outputs given, the op has 1");
  Tensor undefined;
  EXPECT_EQ(message<DeviceError>({&undefined, 1}), "add: operand 0: the tensor is undefined");
  Tensor strided = Tensor::empty(device, {3, 2}).transpose(0, 1);
  EXPECT_EQ(message<LayoutError>({&strided, 1}), "add: output 0 is not contiguous");
  const Device elsewhere = cpu_device({.threads = 1, .name = "other"});
  Tensor far = Tensor::empty(elsewhere, {2, 3});
  EXPECT_EQ(message<DeviceError>({&far, 1}), "add: output 0 is f32(2,3) on other, the operands are on cpu");
}

TEST_F(RunTest, into_outputs_that_somebody_holds) {
  Tensor out = Tensor::empty(device, {2, 3});
  const Tensor second = out;
  EXPECT_EQ(message<AliasError>({&out, 1}), "add: output 0 has 1 other owner(s)");
  Tensor same = a;
  EXPECT_EQ(message<AliasError>({&same, 1}), "add: output 0 shares storage with an operand");
  Tensor repeated = Tensor::empty(device, {1, 3}).expand({2, 3});
  EXPECT_THROW(into({&repeated, 1}), LayoutError);  // pytorch#17935: nobody writes through a stride of 0
}

TEST_F(RunTest, in_place_on_an_operand) {
  Tensor out = a;
  into({&out, 1}, true);
  EXPECT_EQ(to_vector<float>(a), (std::vector<float>{11, 22, 33, 14, 25, 36}));
  const Tensor third = a;
  EXPECT_THROW(into({&out, 1}, true), AliasError);
}

TEST_F(RunTest, in_place_beside_an_operand) {
  // Shifted by one element: neither the same elements nor apart.
  const Tensor whole = Tensor::zeros(device, {7});
  const Tensor low = whole.slice(0, 0, 6);
  Tensor high = whole.slice(0, 1, 7);
  const Tensor one = Tensor::from(device, {1}, {1.0f});
  const Tensor* in[] = {&low, &one};
  EXPECT_THROW(run_into(record_of<Add>, &attrs, in, {&high, 1}, true), AliasError);
}

TEST_F(RunTest, operands_are_made_dense_only_where_a_kernel_asks) {
  const std::int64_t before = device.counts().layout_copies;
  EXPECT_EQ(to_vector<float>(add(a.transpose(0, 1), Tensor::from(device, {}, {1.0f}))),
            (std::vector<float>{2, 5, 3, 6, 4, 7}));
  EXPECT_EQ(device.counts().layout_copies, before);
}

TEST_F(RunTest, counters) {
  const std::int64_t launches = device.counts().launches, flops = device.counts().flops;
  add(a, b);
  EXPECT_EQ(device.counts().launches, launches + 1);
  EXPECT_EQ(device.counts().flops, flops + 6);
}

TEST_F(RunTest, no_operands_and_no_device) { EXPECT_THROW(run(record_of<Add>, &attrs, {}), DeviceError); }

TEST_F(RunTest, call_site_in_errors) {
  try {
    gelu(Tensor());
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_EQ(std::string(e.what()),
              fmt::format("gelu: operand 0: the tensor is undefined [run_test.cpp:{}]", __LINE__ - 4));
  }
  try {
    a + Tensor();
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_STREQ(e.what(), "add: operand 1: the tensor is undefined");
  }
}

TEST_F(RunTest, mixed_devices) {
  const Device other = cpu_device({.threads = 1, .name = "second"});
  try {
    add(a, Tensor::zeros(other, {3}));
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_EQ(std::string(e.what()).find("add: operand 0 is f32(2,3) on cpu, operand 1 is f32(3) on second"), 0u);
  }
}

TEST_F(RunTest, out_of_memory_is_an_error_and_no_end) {
  const Device small = cpu_device({.threads = 1, .memory_limit = 8192});
  const Tensor x = Tensor::zeros(small, {1024});
  EXPECT_THROW(add(x, Tensor::zeros(small, {1024})), OutOfMemory);
  EXPECT_EQ(to_vector<float>(sum(x)), std::vector<float>{0});
  EXPECT_EQ(small.memory().live_bytes, 4096);
}

TEST_F(RunTest, forced_variant_that_does_not_support_the_problem) {
  for (const Variant* v : device.state()->kernels->entry(OpId<Gelu>::value).all) {
    if (v->name != "gelu.cpu.vector.f16.baseline") continue;
    const Tensor* in[] = {&a};
    const Gelu::Attrs gelu_attrs;
    try {
      run_variant(record_of<Gelu>, *v, &gelu_attrs, in);
      FAIL();
    } catch (const MissingKernel& e) {
      EXPECT_STREQ(e.what(), "gelu: gelu.cpu.vector.f16.baseline: other dtype");
    }
  }
}

Support refuse(const void*, Operands, Operands) { return Support::no("rows of 16 only"); }

TEST(MissingKernelTest, names_every_variant_and_its_reason) {
  static constexpr Variant picky{"gelu.host.fast.f32", Isa::baseline, true, refuse, nullptr};
  static constexpr Variant pickier{"gelu.host.faster.f32", Isa::baseline, true, refuse, nullptr};
  auto table = std::make_shared<KernelTable>();
  table->entry(OpId<Gelu>::value).all = table->entry(OpId<Gelu>::value).usable = {&pickier, &picky};
  table->entry(OpId<Add>::value).missing = "elementwise ops are not ported";
  const Device device(make_ref<DeviceState>(std::make_unique<test::HostBackend>(test::HostBackend::Options{}),
                                            MemoryPool::Options{}, table, "toy"));
  const Tensor x = Tensor::zeros(device, {2, 3});
  try {
    gelu(x);
    FAIL();
  } catch (const MissingKernel& e) {
    EXPECT_EQ(std::string(e.what()).find("gelu: no kernel on toy for f32(2,3); gelu.host.faster.f32: rows of 16 only; "
                                         "gelu.host.fast.f32: rows of 16 only"),
              0u)
        << e.what();
  }
  try {
    x + x;
    FAIL();
  } catch (const MissingKernel& e) {
    EXPECT_STREQ(e.what(), "add: no kernel on toy for f32(2,3) f32(2,3); elementwise ops are not ported");
  }
}

TEST(ShapeDeviceTest, infers_and_counts_without_elements) {
  const Device shapes = shape_device();
  const Tensor x = Tensor::empty(shapes, {1 << 20, 1 << 20});
  const Tensor y = gelu(add(x, Tensor::empty(shapes, {1 << 20})));
  EXPECT_EQ(y.shape(), x.shape());
  EXPECT_EQ(shapes.counts().launches, 2);
  EXPECT_EQ(shapes.counts().flops, 10 * x.count());
  EXPECT_THROW(add(x, Tensor::empty(shapes, {7})), ShapeError);
  EXPECT_THROW(to_vector<float>(y), DeviceError);
}

}  // namespace
}  // namespace lamina
