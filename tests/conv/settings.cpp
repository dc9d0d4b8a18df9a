// Convolutions in random settings: strides beyond the kernel, padding beyond it, dilation, remainders, groups.
// Gradients that are right only when the stride divides are the classic fault (backpack#30, mlpack#2986).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "lamina/core/rng.hpp"
#include "lamina/kernels/conv2d/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {
namespace {

bool long_run() {
  const char* text = std::getenv("LAMINA_LONG");
  return text != nullptr && *text != 0 && *text != '0';
}

struct Setting {
  Conv2dAttrs attrs;
  Shape x, weight, y;
};

Setting setting(std::uint64_t number) {
  const Rng rng(2015, number);
  std::uint64_t drawn = 0;
  auto draw = [&](std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(hi - lo + 1), 0, drawn++));
  };
  for (;;) {
    Setting s;
    const std::int64_t kind = draw(0, 9);
    s.attrs.groups = kind < 6 ? 1 : kind < 8 ? draw(2, 3) : draw(2, 19);
    const std::int64_t channels = kind < 2 ? draw(24, 60) : draw(1, 9), outputs = kind < 4 ? draw(16, 50) : draw(1, 9);
    const bool depthwise = kind >= 8;
    std::int64_t kernel[2], extent[2];
    for (std::size_t d = 0; d < 2; ++d) {
      kernel[d] = kind == 0 || draw(0, 3) == 0 ? 1 : draw(1, 5);
      s.attrs.stride[d] = draw(0, 1) == 0 ? 1 : draw(1, 5);
      s.attrs.padding[d] = draw(0, 2) == 0 ? 0 : draw(0, kernel[d] + 2);
      s.attrs.dilation[d] = draw(0, 2) != 0 ? 1 : draw(2, 4);
      extent[d] = draw(0, 1) == 0 ? draw(1, 12) : draw(1, 40);
    }
    if (kind == 0 && draw(0, 1) == 0) s.attrs = {.groups = 1};
    s.x = {draw(1, 4), depthwise ? s.attrs.groups : channels * s.attrs.groups, extent[0], extent[1]};
    s.weight = {depthwise ? s.attrs.groups * draw(1, 3) : outputs * s.attrs.groups, depthwise ? 1 : channels, kernel[0],
                kernel[1]};
    try {
      const Meta in[] = {{s.x}, {s.weight}};
      s.y = Conv2d::infer(s.attrs, in)[0].shape;
    } catch (const ShapeError&) {  // the kernel does not fit
      continue;
    }
    if (s.y.count() * channels * kernel[0] * kernel[1] < 400000) return s;
  }
}

// Sums of few powers of two: products and sums of them are exact in f32, so that comparisons are of bits.
std::vector<float> values(const Rng& rng, std::uint64_t which, const Shape& shape) {
  std::vector<float> v(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(rng.below(31, which, i)) / 8 - 2;
  return v;
}

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Runs an op with every kernel that this machine has for it; all must give the bits of the reference.
template <class O>
std::vector<float> run_all(const Device& device, const typename O::Attrs& attrs, const Tensor& a, const Tensor& b,
                           std::uint64_t number) {
  const KernelTable::Entry& entry = device.state()->kernels->entry(OpId<O>::value);
  const Tensor* in[] = {&a, &b};
  const Tensor want = run_variant(record_of<O>, *entry.all.back(), &attrs, in)[0];
  const auto reference = host<float>(want);
  for (const Variant* v : entry.all) {
    const bool runs = std::find(entry.usable.begin(), entry.usable.end(), v) != entry.usable.end();
    if (v == entry.all.back() || (!runs && v->isa != Isa::wide)) continue;
    if (v->isa == Isa::wide &&
        std::none_of(entry.usable.begin(), entry.usable.end(), [](const Variant* u) { return u->isa == Isa::avx2; })) {
      continue;
    }
    Tensor got;
    try {
      got = run_variant(record_of<O>, *v, &attrs, in)[0];
    } catch (const MissingKernel&) {  // not this problem
      continue;
    }
    const auto have = host<float>(got);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < have.size(); ++i) wrong += have[i] == reference[i] ? 0 : 1;
    EXPECT_EQ(wrong, 0u) << v->name << ", setting " << number << ": of " << have.size();
  }
  return {reference.begin(), reference.end()};
}

TEST(Settings, KernelsAndGradients) {
  const Device device = cpu_device({.threads = 2, .poison_memory = true});
  const std::uint64_t step = long_run() ? 1 : 9;
  for (std::uint64_t number = 0; number < 500; number += step) {
    const Setting s = setting(number);
    SCOPED_TRACE(fmt::format("x {} weight {} stride {},{} padding {},{} dilation {},{} groups {}", to_string(s.x),
                             to_string(s.weight), s.attrs.stride[0], s.attrs.stride[1], s.attrs.padding[0],
                             s.attrs.padding[1], s.attrs.dilation[0], s.attrs.dilation[1], s.attrs.groups));
    const Rng rng(15, number);
    const std::vector<float> x = values(rng, 0, s.x), weight = values(rng, 1, s.weight), dy = values(rng, 2, s.y);
    const Tensor tx = Tensor::from(device, s.x, x), tw = Tensor::from(device, s.weight, weight),
                 tdy = Tensor::from(device, s.y, dy);
    const auto y = run_all<Conv2d>(device, s.attrs, tx, tw, number);
    const auto dx = run_all<Conv2dInputGrad>(device, {s.attrs, {s.x[2], s.x[3]}}, tdy, tw, number);
    const auto dw = run_all<Conv2dWeightGrad>(device, {s.attrs, {s.weight[2], s.weight[3]}}, tdy, tx, number);
    // The forward pass is linear in x and in weight, so this is the whole of what gradients must satisfy; and exact.
    const double along_y = dot(dy, y);
    EXPECT_EQ(dot(dx, x), along_y);
    EXPECT_EQ(dot(dw, weight), along_y);
    if (HasFailure()) break;
  }
}

// One weight sees a quarter of a million pixels: the sum of as many equal terms must not drift.
TEST(WeightGrad, LongSumsKeepTheirDigits) {
  const Device device = cpu_device({.threads = 2});
  for (const std::int64_t outputs : {1, 40}) {
    const Shape shape{64, outputs, 64, 64};
    const Tensor x = Tensor::from(device, {64, 1, 64, 64}, std::vector<float>(64 * 64 * 64, 0.1f));
    const Tensor dy = Tensor::from(device, shape, std::vector<float>(static_cast<std::size_t>(shape.count()), 1.0f));
    const Conv2dWeightGrad::Attrs attrs{{}, {1, 1}};
    const double want = 64.0 * 64 * 64 * static_cast<double>(0.1f);
    const KernelTable::Entry& entry = device.state()->kernels->entry(OpId<Conv2dWeightGrad>::value);
    const Tensor* in[] = {&dy, &x};
    for (const Variant* v : entry.usable) {
      if (v == entry.usable.back()) continue;
      try {
        const Tensor dw = run_variant(record_of<Conv2dWeightGrad>, *v, &attrs, in)[0];
        EXPECT_NEAR(static_cast<double>(host<float>(dw)[0]) / want, 1, 1e-6) << v->name;
      } catch (const MissingKernel&) {
      }
    }
  }
}

TEST(Attributes, OutOfRange) {
  const Device device = cpu_device({.threads = 1});
  const Tensor x = Tensor::zeros(device, {1, 4, 5, 5}), w = Tensor::zeros(device, {6, 2, 3, 3});
  const Conv2dAttrs good{.groups = 2};
  EXPECT_EQ(conv2d(x, w, good).shape(), (Shape{1, 6, 3, 3}));
  auto with = [&](auto change) {
    Conv2dAttrs attrs = good;
    change(attrs);
    return attrs;
  };
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.stride[1] = 0; })), ValueError);
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.padding[0] = -1; })), ValueError);
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.dilation[0] = 0; })), ValueError);
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.padding[0] = std::int64_t{1} << 40; })), ValueError);
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.groups = 0; })), ValueError);
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.groups = 4; })), ShapeError);         // 6 outputs in 4 groups
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.groups = 1; })), ShapeError);         // 2 channels, not 4
  EXPECT_THROW(conv2d(x, w, with([](auto& a) { a.dilation = {3, 1}; })), ShapeError);  // spans 7 rows of 5
  EXPECT_THROW(apply<Conv2dInputGrad>({good, {9, 5}}, {}, Tensor::zeros(device, {1, 6, 3, 3}), w), ShapeError);
  EXPECT_THROW(apply<Conv2dWeightGrad>({good, {2, 3}}, {}, Tensor::zeros(device, {1, 6, 3, 3}), x), ShapeError);
}

}  // namespace
}  // namespace lamina
