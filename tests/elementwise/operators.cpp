// + - * / between tensors, vars and numbers: to the last place where IEEE arithmetic says which it is.
#include <cmath>

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/div/op.hpp"
#include "lamina/kernels/mul/op.hpp"
#include "lamina/kernels/neg/op.hpp"
#include "lamina/kernels/offset/op.hpp"
#include "lamina/kernels/scale/op.hpp"
#include "lamina/kernels/sub/op.hpp"
#include "tests/elementwise/support.hpp"

namespace lamina {
namespace {

const std::vector<float> kA{1.5f, -2.25f, 0.1f, 3e38f, -1e-40f, 0.0f, -0.0f, kInf, 7.0f, 16777216.0f, 1e-45f};
const std::vector<float> kB{-0.3f, 0.7f, 0.1f, 3e38f, 3.0f, -0.0f, 1.0f, -kInf, 0.0f, 1.0f, 0.5f};

// Equal, signs of zeros too; all NaN are one.
void expect_same(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << i << ": " << got[i];
    } else {
      EXPECT_EQ(got[i], want[i]) << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << i;
    }
  }
}

template <class F>
std::vector<float> each(const std::vector<float>& a, const std::vector<float>& b, F f) {
  std::vector<float> out;
  for (std::size_t i = 0; i < a.size(); ++i) out.push_back(f(a[i], b[i]));
  return out;
}

TEST(Operators, OfTensors) {
  on_every_isa([](const Device& device) {
    const Tensor a = vector_of(device, kA), b = vector_of(device, kB);
    expect_same(to_vector<float>(a + b), each(kA, kB, std::plus<>()));
    expect_same(to_vector<float>(a - b), each(kA, kB, std::minus<>()));
    expect_same(to_vector<float>(a * b), each(kA, kB, std::multiplies<>()));
    expect_same(to_vector<float>(a / b), each(kA, kB, std::divides<>()));
    expect_same(to_vector<float>(-a), each(kA, kB, [](float x, float) { return -x; }));
  });
}

TEST(Operators, WithNumbers) {
  on_every_isa([](const Device& device) {
    const Tensor a = vector_of(device, kA);
    for (const float s : {0.3f, -2.0f, 0.0f, 3.0f}) {
      const auto number = static_cast<double>(s);
      auto with = [&](auto f) { return each(kA, kA, [&](float x, float) { return f(x); }); };
      expect_same(to_vector<float>(a + number), with([&](float x) { return x + s; }));
      expect_same(to_vector<float>(number + a), with([&](float x) { return x + s; }));
      expect_same(to_vector<float>(a - number), with([&](float x) { return x - s; }));
      expect_same(to_vector<float>(a * number), with([&](float x) { return x * s; }));
      expect_same(to_vector<float>(number * a), with([&](float x) { return x * s; }));
    }
    // A quotient is the product with the reciprocal: exact for powers of two.
    expect_same(to_vector<float>(a / -4.0), each(kA, kA, [](float x, float) { return x / -4; }));
    const std::vector<float> third = to_vector<float>(a / 3.0);
    for (std::size_t i = 0; i < kA.size(); ++i) {
      const float want = kA[i] / 3;
      if (std::isinf(want)) {
        EXPECT_EQ(third[i], want);
      } else {
        EXPECT_NEAR(third[i], want, std::max(0x1p-149, std::abs(static_cast<double>(want)) * 0x1p-23)) << kA[i];
      }
    }
  });
}

// A number is rounded to the dtype of the tensor, not to f32.
TEST(Operators, WithNumbersInF64) {
  const Device device = cpu_device({.threads = 1});
  const Tensor x = cast(vector_of(device, {1.0f, 3.0f}), DType::f64);
  EXPECT_EQ(to_vector<double>(x + 0.1), (std::vector<double>{1.1, 3.1}));
  EXPECT_EQ(to_vector<double>(x * 0.1), (std::vector<double>{0.1, 3 * 0.1}));
}

TEST(Operators, GradientsOfVars) {
  on_every_isa([](const Device& device) {
    const std::vector<float> a{1.5f, -2.25f, 0.1f, 3.0f}, b{-0.3f, 0.7f, 0.9f, 4.0f}, dy{1.0f, -2.0f, 0.7f, 3.0f};
    auto gradients = [&](auto f) {
      Tape tape;
      const Var x = tape.input(vector_of(device, a)), y = tape.input(vector_of(device, b));
      const Var out = f(x, y);
      Pass pass = tape.pass();
      pass.seed(out, vector_of(device, dy));
      pass.run({x, y});
      return std::pair(to_vector<float>(*pass.take(x)), to_vector<float>(*pass.take(y)));
    };
    const auto minus = [](float x, float) { return -x; };
    const auto sum = gradients([](const Var& x, const Var& y) { return x + y; });
    expect_same(sum.first, dy);
    expect_same(sum.second, dy);
    const auto difference = gradients([](const Var& x, const Var& y) { return x - y; });
    expect_same(difference.first, dy);
    expect_same(difference.second, each(dy, dy, minus));
    const auto product = gradients([](const Var& x, const Var& y) { return x * y; });
    expect_same(product.first, each(dy, b, std::multiplies<>()));
    expect_same(product.second, each(dy, a, std::multiplies<>()));
    const auto quotient = gradients([](const Var& x, const Var& y) { return x / y; });
    expect_same(quotient.first, each(dy, b, std::divides<>()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double want = -static_cast<double>(dy[i]) * static_cast<double>(a[i]) / std::pow(b[i], 2);
      EXPECT_NEAR(quotient.second[i], want, 2 * 0x1p-23 * std::abs(want));
    }
    auto of = [&](auto f) { return differentiate(device, a, f, dy).gradient; };
    expect_same(of([](const Var& x) { return x + 2.0; }), dy);
    expect_same(of([](const Var& x) { return 2.0 + x; }), dy);
    expect_same(of([](const Var& x) { return x - 2.0; }), dy);
    expect_same(of([](const Var& x) { return x * 0.5; }), each(dy, dy, [](float d, float) { return d * 0.5f; }));
    expect_same(of([](const Var& x) { return 0.3 * x; }), each(dy, dy, [](float d, float) { return d * 0.3f; }));
    expect_same(of([](const Var& x) { return x / 8.0; }), each(dy, dy, [](float d, float) { return d / 8; }));
    expect_same(of([](const Var& x) { return -x; }), each(dy, dy, minus));
    expect_same(of([](const Var& x) { return x * x; }), each(a, dy, [](float x, float d) { return 2 * (x * d); }));
  });
}

}  // namespace
}  // namespace lamina
