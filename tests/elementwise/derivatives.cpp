// The gradients of the unary functions in f32, with the cotangent 1, against the derivatives in float64, over floats of
// every magnitude. The bound is `ulps` units in the last place of the derivative, plus what the op's way of computing
// it cannot do without: where it goes from the result y rounded to f32 (tanh, the upper half of sigmoid), the change of
// the derivative with the last places of y; where the function is steep (gelu), that with the last places of x.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "lamina/kernels/exp/op.hpp"
#include "lamina/kernels/gelu/op.hpp"
#include "lamina/kernels/log/op.hpp"
#include "lamina/kernels/relu/op.hpp"
#include "lamina/kernels/sigmoid/op.hpp"
#include "lamina/kernels/sqrt/op.hpp"
#include "lamina/kernels/tanh/op.hpp"
#include "tests/elementwise/support.hpp"

namespace lamina {
namespace {

// Every exponent, subnormals and both signs; denser where the functions bend.
const std::vector<float>& sweep() {
  static const std::vector<float> values = [] {
    std::vector<float> x;
    for (std::uint64_t u = 0; u < 0x7f800000u; u += 40093) {
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(u)));
      x.push_back(-x.back());
    }
    for (int i = -60000; i <= 60000; ++i) x.push_back(static_cast<float>(i) * 1.9e-3f);
    for (const float v : {1e-45f, 1.17549435e-38f, 3.4028235e38f, 1.0f}) {
      x.push_back(v);
      x.push_back(-v);
    }
    return x;
  }();
  return values;
}

double ulp_of(double value) {
  const int exponent = value == 0 ? -126 : std::clamp(std::ilogb(value), -126, 127);
  return std::ldexp(1.0, exponent - 23);
}

// extra(x): what is allowed beside the ulps. `in`: where the function has a derivative.
template <class F, class Truth, class Extra, class In>
void expect_derivative(F f, Truth truth, double ulps, Extra extra, In in) {
  std::vector<float> x;
  std::copy_if(sweep().begin(), sweep().end(), std::back_inserter(x), in);
  on_every_isa([&](const Device& device) {
    const std::vector<float> got = differentiate(device, x, f).gradient;
    ASSERT_EQ(got.size(), x.size());
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = truth(static_cast<double>(x[i]));
      if (static_cast<double>(got[i]) == want || got[i] == static_cast<float>(want)) continue;
      const double beyond = std::abs(static_cast<double>(got[i]) - want) - extra(static_cast<double>(x[i]));
      const double distance = std::isnan(beyond) ? std::numeric_limits<double>::infinity() : beyond / ulp_of(want);
      if (distance > worst) {
        worst = distance;
        at = i;
      }
    }
    ::testing::Test::RecordProperty("worst", std::to_string(worst));
    EXPECT_LE(worst, ulps) << "at " << x[at] << ": " << got[at] << " for " << truth(static_cast<double>(x[at]));
  });
}

const auto kNothing = [](double) { return 0.0; };
const auto kEverywhere = [](float) { return true; };

TEST(Derivatives, Exp) {
  expect_derivative([](const Var& x) { return exp(x); }, [](double x) { return std::exp(x); }, 1.5, kNothing,
                    kEverywhere);
}

TEST(Derivatives, Log) {
  expect_derivative([](const Var& x) { return log(x); }, [](double x) { return 1 / x; }, 0.5, kNothing,
                    [](float x) { return x > 0; });
}

TEST(Derivatives, Sqrt) {
  expect_derivative([](const Var& x) { return sqrt(x); }, [](double x) { return 0.5 / std::sqrt(x); }, 1.5, kNothing,
                    [](float x) { return x >= 0 && !std::signbit(x); });
}

TEST(Derivatives, Relu) {
  expect_derivative([](const Var& x) { return relu(x); }, [](double x) { return x > 0 ? 1.0 : 0.0; }, 0, kNothing,
                    kEverywhere);
}

TEST(Derivatives, Tanh) {
  // 1 - y^2 of a y with an error of 2.5 units of 2^-24.
  expect_derivative([](const Var& x) { return tanh(x); },
                    [](double x) {
                      const double e = std::exp(-2 * std::abs(x));
                      return 4 * e / ((1 + e) * (1 + e));
                    },
                    1.5, [](double x) { return 5 * 0x1p-24 * std::abs(std::tanh(x)); }, kEverywhere);
}

TEST(Derivatives, Sigmoid) {
  expect_derivative([](const Var& x) { return sigmoid(x); },
                    [](double x) {
                      const double e = std::exp(-std::abs(x));
                      return e / ((1 + e) * (1 + e));
                    },
                    5, [](double x) { return x > 0 ? 2.5 * 0x1p-24 : 0.0; }, kEverywhere);
}

// x, first and second derivative of x P(N < x), P the distribution of a normal N.
double erf_form(double x) {
  return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
double erf_form_slope(double x) {
  if (std::abs(x) > 50) return 0;
  return (2 - x * x) * std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
}
// The same of x s(v), s the logistic function and v = x (p + q x^2).
double tanh_form(double x) {
  if (std::abs(x) > 50) return x > 0 ? 1 : 0;
  const double p = 2 * std::sqrt(2 / std::numbers::pi), q = p * 0.044715, v = x * (p + q * x * x);
  const double s = 1 / (1 + std::exp(-v)), t = 1 / (1 + std::exp(v));
  return s + x * s * t * (p + 3 * q * x * x);
}
double tanh_form_slope(double x) {
  const double h = 1e-5;
  return (tanh_form(x + h) - tanh_form(x - h)) / (2 * h);
}

TEST(Derivatives, Gelu) {
  // Near 0 the erf form's tail has three times the relative error of its argument 1 / (1 + 0.27 |x|).
  // An exponential that is subnormal has lost places before it is multiplied by up to some hundreds.
  expect_derivative([](const Var& x) { return gelu(x, {.tanh_form = false}); }, erf_form, 8,
                    [](double x) { return 4 * 0x1p-24 * std::abs(x * erf_form_slope(x)) + 0x1p-149 * std::abs(x); },
                    kEverywhere);
  expect_derivative([](const Var& x) { return gelu(x); }, tanh_form, 6,
                    [](double x) {
                      const double factor = std::abs(x) * (1.6 + 0.22 * x * x);
                      return 4 * 0x1p-24 * std::abs(x * tanh_form_slope(x)) +
                             (std::abs(x) < 20 ? 0x1p-149 * factor : 0);
                    },
                    kEverywhere);
}

// The gradients of tanh and sigmoid as functions of the result itself: nothing cancels.
TEST(Derivatives, FromResults) {
  std::vector<float> y;
  for (int i = 0; i <= 40000; ++i) y.push_back(1 - static_cast<float>(i) * 0x1p-24f);
  for (std::uint32_t u = 0; u < 0x3f800000u; u += 40093) y.push_back(std::bit_cast<float>(u));
  on_every_isa([&](const Device& device) {
    const std::vector<float> ones(y.size(), 1.0f);
    const Tensor dy = vector_of(device, ones), t = vector_of(device, y);
    const std::vector<float> by_tanh = to_vector<float>(apply<TanhGrad>({}, {}, dy, t));
    const std::vector<float> by_sigmoid = to_vector<float>(apply<SigmoidGrad>({}, {}, dy, t));
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto r = static_cast<double>(y[i]);
      const double of_tanh = (1 - r) * (1 + r), of_sigmoid = r * (1 - r);
      ASSERT_LE(std::abs(static_cast<double>(by_tanh[i]) - of_tanh), 1.5 * ulp_of(of_tanh)) << r;
      ASSERT_LE(std::abs(static_cast<double>(by_sigmoid[i]) - of_sigmoid), 1.5 * ulp_of(of_sigmoid)) << r;
    }
  });
}

TEST(Derivatives, Ends) {
  on_every_isa([](const Device& device) {
    auto gradient = [&](float x, auto f) { return differentiate(device, {x}, f).gradient[0]; };
    const auto e = [](const Var& x) { return exp(x); };
    EXPECT_EQ(gradient(kInf, e), kInf);
    EXPECT_EQ(gradient(-kInf, e), 0);
    const auto l = [](const Var& x) { return log(x); };
    EXPECT_EQ(gradient(kInf, l), 0);
    EXPECT_EQ(gradient(0, l), kInf);
    EXPECT_EQ(gradient(-0.0f, l), -kInf);
    const auto r = [](const Var& x) { return sqrt(x); };
    EXPECT_EQ(gradient(0, r), kInf);
    EXPECT_EQ(gradient(kInf, r), 0);
    EXPECT_TRUE(std::isnan(gradient(-1, r)));
    for (const float x : {kInf, -kInf}) {
      EXPECT_EQ(gradient(x, [](const Var& v) { return tanh(v); }), 0);
      EXPECT_EQ(gradient(x, [](const Var& v) { return sigmoid(v); }), 0);
      EXPECT_EQ(gradient(x, [](const Var& v) { return relu(v); }), x > 0 ? 1 : 0);
    }
    EXPECT_EQ(gradient(-0.0f, [](const Var& v) { return relu(v); }), 0);
    for (const auto& f : std::vector<std::function<Var(const Var&)>>{
             e, l, r, [](const Var& v) { return tanh(v); }, [](const Var& v) { return sigmoid(v); },
             [](const Var& v) { return gelu(v); }, [](const Var& v) { return gelu(v, {.tanh_form = false}); }}) {
      EXPECT_TRUE(std::isnan(gradient(kNan, f)));
    }
  });
}

}  // namespace
}  // namespace lamina
