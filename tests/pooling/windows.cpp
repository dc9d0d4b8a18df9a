// Pooling over random windows of images full of ties, NaN, infinities and both zeros: every kernel has the values and
// places of the reference. Averages are of small multiples of a power of two, whose sums are exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lamina/core/rng.hpp"
#include "lamina/kernels/avg_pool2d/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/max_pool2d/op.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {
namespace {

struct Setting {
  Window2d window;
  Shape image, pooled;
};

Setting setting(std::uint64_t number) {
  const Rng rng(1986, number);
  std::uint64_t drawn = 0;
  auto draw = [&](std::int64_t lo, std::int64_t hi) {
    return lo + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(hi - lo + 1), 0, drawn++));
  };
  Setting s;
  std::int64_t extent[2];
  for (std::size_t d = 0; d < 2; ++d) {
    s.window.kernel[d] = draw(1, 5);
    s.window.stride[d] = draw(1, 4);
    s.window.padding[d] = draw(0, s.window.kernel[d] / 2);
    extent[d] = s.window.kernel[d] + draw(0, draw(0, 1) == 0 ? 6 : 60);
  }
  s.image = Shape{draw(1, 3), draw(1, 3), extent[0], extent[1]};
  s.pooled = pooled_shape("test", s.window, {s.image, DType::f32});
  return s;
}

// Every kernel that this machine can run but the reference, which is called first.
template <class O, class F>
void for_each_kernel(const Device& device, const typename O::Attrs& attrs, std::initializer_list<const Tensor*> in,
                     F f) {
  const KernelTable::Entry& entry = device.state()->kernels->entry(OpId<O>::value);
  const TensorRefs operands(in.begin(), in.size());
  const Tensors want = run_variant(record_of<O>, *entry.all.back(), &attrs, operands);
  const bool avx2 =
      std::any_of(entry.usable.begin(), entry.usable.end(), [](const Variant* v) { return v->isa == Isa::avx2; });
  for (const Variant* v : entry.all) {
    const bool usable = std::find(entry.usable.begin(), entry.usable.end(), v) != entry.usable.end();
    if (v == entry.all.back() || (!usable && !(avx2 && v->isa == Isa::wide))) continue;
    try {
      f(*v, run_variant(record_of<O>, *v, &attrs, operands), want);
    } catch (const MissingKernel&) {  // another dtype
    }
  }
}

std::size_t differences(const Tensor& have, const Tensor& want, float most) {
  const auto a = host<float>(have), b = host<float>(want);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]) || std::abs(a[i] - b[i]) <= most;
    wrong += same ? 0 : 1;
  }
  return wrong;
}

TEST(Windows, LargestAndPlaces) {
  const Device device = cpu_device({.threads = 2, .poison_memory = true});
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::uint64_t number = 0; number < 120; ++number) {
    const Setting s = setting(number);
    const float choices[] = {-inf, -inf, -inf, 0.0f, -0.0f, 1.0f, inf, nan};
    const std::uint64_t kinds = number % 4 == 0 ? 8 : number % 4 == 1 ? 3 : 7;
    const Rng rng(7, number);
    std::vector<float> values(static_cast<std::size_t>(s.image.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = choices[rng.below(kinds, 0, i)];
    const Tensor x = Tensor::from(device, s.image, values);
    for_each_kernel<MaxPool2d>(device, s.window, {&x}, [&](const Variant& v, const Tensors& have, const Tensors& want) {
      EXPECT_EQ(differences(have[0], want[0], 0), 0u) << v.name << ", setting " << number;
      const auto places = host<std::int64_t>(have[1]), right = host<std::int64_t>(want[1]);
      EXPECT_TRUE(std::equal(places.begin(), places.end(), right.begin())) << v.name << ", setting " << number;
    });
    if (HasFailure()) break;
  }
}

TEST(Windows, Averages) {
  const Device device = cpu_device({.threads = 2, .poison_memory = true});
  for (std::uint64_t number = 0; number < 120; ++number) {
    const Setting s = setting(number);
    const Rng rng(8, number);
    auto tensor = [&](const Shape& shape, std::uint64_t which) {
      std::vector<float> values(static_cast<std::size_t>(shape.count()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(rng.below(31, which, i)) / 8 - 2;
      return Tensor::from(device, shape, values);
    };
    const Tensor x = tensor(s.image, 0), dy = tensor(s.pooled, 1);
    const AvgPool2dAttrs attrs{s.window, number % 2 == 0};
    for_each_kernel<AvgPool2d>(device, attrs, {&x}, [&](const Variant& v, const Tensors& have, const Tensors& want) {
      EXPECT_EQ(differences(have[0], want[0], 0), 0u) << v.name << ", setting " << number;
    });
    for_each_kernel<AvgPool2dGrad>(device, {attrs, {s.image[2], s.image[3]}}, {&dy},
                                   [&](const Variant& v, const Tensors& have, const Tensors& want) {
                                     EXPECT_EQ(differences(have[0], want[0], 4e-6f), 0u)  // shares are rounded
                                         << v.name << ", setting " << number;
                                   });
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace lamina
