// Accuracy of the lane functions of all instruction sets, against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "lamina/core/dtype.hpp"
#include "lamina/kernels/cpu/isa.hpp"

namespace lamina {

namespace {

using FloatFunction = void (*)(const float*, float*, std::int64_t);

struct Functions {
  FloatFunction exp, log, tanh, sigmoid, erf, sqrt, round;
  void (*from_bf16)(const BFloat16*, float*, std::int64_t);
  void (*from_f16)(const Half*, float*, std::int64_t);
  void (*to_bf16)(const float*, BFloat16*, std::int64_t);
  void (*to_f16)(const float*, Half*, std::int64_t);
  float (*sum_lanes)(const float*);
  float (*max_lanes)(const float*);
  int (*lanes)();
};

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/tests/simd/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

struct Set {
  Isa isa;
  const Functions* functions;
};

std::vector<Set> sets() {
  std::vector<Set> all;
  const CpuFeatures features = CpuFeatures::read();
  auto add = [&](Isa isa, const Functions& (*functions)()) {
    if (can_run(isa, features)) all.push_back({isa, &functions()});
  };
  add(Isa::baseline, baseline::functions);
  add(Isa::avx2, avx2::functions);
  add(Isa::avx512, avx512::functions);
  add(Isa::wide, wide::functions);
  return all;
}

float from_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Floats spread evenly over all bit patterns (every exponent, subnormals, NaNs), dense runs of consecutive floats
// around the places where the functions change their formula, and the special values.
const std::vector<float>& sweep() {
  static const std::vector<float> values = [] {
    std::vector<float> x;
    for (std::uint64_t u = 0; u < (std::uint64_t{1} << 32); u += 4099)
      x.push_back(from_bits(static_cast<std::uint32_t>(u)));
    const float inf = std::numeric_limits<float>::infinity();
    for (const float at :
         {0.0f,    1e-45f,      1e-38f, 1.17549435e-38f, 0.25f, 0.34657359f, 0.5f,   0.70710678f, 0.921875f,
          1.0f,    1.41421356f, 2.0f,   3.92f,           4.0f,  8.31f,       9.01f,  17.3f,       44.0f,
          87.33f,  88.02f,      88.72f, 88.7228f,        89.0f, 103.97f,     104.0f, 4194304.0f,  8388608.0f,
          3.4e38f, inf}) {
      const auto bits = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(at));
      for (std::int64_t d = -2000; d <= 2000; ++d) {
        const std::int64_t b = std::clamp<std::int64_t>(bits + d, 0, 0x7fffffff);
        x.push_back(from_bits(static_cast<std::uint32_t>(b)));
        x.push_back(-x.back());
      }
    }
    for (int i = 0; i < 200000; ++i) {  // where most values live
      x.push_back(static_cast<float>(i) * 1e-4f);
      x.push_back(static_cast<float>(i) * -1e-4f);
      x.push_back(static_cast<float>(i - 100000) * 1.05e-3f);
    }
    return x;
  }();
  return values;
}

struct Worst {
  double ulps = 0;
  float at = 0, got = 0;
  double want = 0;
};

// Units of the last place of the true value: 2^(e - 23), not below the subnormals' spacing. Beyond the largest float,
// infinity is exact.
double ulps_between(float got, double want) {
  if (std::isnan(want) || std::isnan(got)) {
    return std::isnan(want) && std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  }
  constexpr double kOverflow = 0x1.ffffffp127;  // rounds to infinity from here on
  if (std::abs(want) >= kOverflow) want = std::copysign(0x1p128, want);
  const double value = std::isinf(got) ? std::copysign(0x1p128, got) : static_cast<double>(got);
  if (value == want) return std::signbit(value) == std::signbit(want) ? 0 : std::numeric_limits<double>::infinity();
  const int exponent = want == 0 ? -126 : std::max(std::ilogb(want), -126);
  return std::abs(value - want) / std::ldexp(1.0, exponent - 23);
}

// The result of every instruction set within `bound` ulp of `truth`, on the sweep.
template <class F>
void expect_within(const char* name, double bound, FloatFunction Functions::*function, F truth) {
  const std::vector<float>& x = sweep();
  std::vector<double> want(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) want[i] = truth(static_cast<double>(x[i]));
  for (const Set& set : sets()) {
    std::vector<float> y(x.size() + 1, 12345.0f);
    (set.functions->*function)(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    Worst worst;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double ulps = ulps_between(y[i], want[i]);
      if (ulps > worst.ulps) worst = {ulps, x[i], y[i], want[i]};
    }
    EXPECT_LE(worst.ulps, bound) << name << " " << name_of(set.isa) << " at " << worst.at << ": " << worst.got
                                 << " for " << worst.want;
    EXPECT_EQ(y.back(), 12345.0f) << "written beyond the end";
    testing::Test::RecordProperty(std::string(name) + "_" + std::string(name_of(set.isa)), std::to_string(worst.ulps));
    if (std::getenv("LAMINA_TEST_VERBOSE") != nullptr) {
      std::printf("%-8s %-9s %.3f ulp at %.9g\n", name, std::string(name_of(set.isa)).c_str(), worst.ulps,
                  static_cast<double>(worst.at));
    }
  }
}

// The bounds are those that math.hpp states.
TEST(Math, Exp) {
  expect_within("exp", 1.25, &Functions::exp, [](double x) { return std::exp(x); });
}
TEST(Math, Log) {
  expect_within("log", 1.25, &Functions::log, [](double x) { return std::log(x); });
}
TEST(Math, Tanh) {
  expect_within("tanh", 2.5, &Functions::tanh, [](double x) { return std::tanh(x); });
}
TEST(Math, Sigmoid) {
  expect_within("sigmoid", 2.5, &Functions::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); });
}
TEST(Math, Erf) {
  expect_within("erf", 1.25, &Functions::erf, [](double x) { return std::erf(x); });
}
TEST(Math, Sqrt) {
  expect_within("sqrt", 0.5, &Functions::sqrt, [](double x) { return std::sqrt(x); });
}
TEST(Math, Round) {
  expect_within("round", 0, &Functions::round, [](double x) { return std::nearbyint(x); });
}

TEST(Math, Ends) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Set& set : sets()) {
    auto at = [&](FloatFunction Functions::*function, float x) {
      float y = 0;
      (set.functions->*function)(&x, &y, 1);
      return y;
    };
    SCOPED_TRACE(name_of(set.isa));
    EXPECT_TRUE(std::isfinite(at(&Functions::exp, 88.7f)));
    EXPECT_EQ(at(&Functions::exp, 89.0f), inf);
    EXPECT_EQ(at(&Functions::exp, inf), inf);
    EXPECT_EQ(at(&Functions::exp, -104.0f), 0.0f);
    EXPECT_EQ(at(&Functions::exp, -inf), 0.0f);
    EXPECT_GT(at(&Functions::exp, -103.0f), 0.0f);
    EXPECT_EQ(at(&Functions::exp, 0.0f), 1.0f);
    EXPECT_EQ(at(&Functions::log, 0.0f), -inf);
    EXPECT_EQ(at(&Functions::log, -0.0f), -inf);
    EXPECT_EQ(at(&Functions::log, inf), inf);
    EXPECT_TRUE(std::isnan(at(&Functions::log, -1.0f)));
    EXPECT_TRUE(std::isnan(at(&Functions::log, -inf)));
    EXPECT_EQ(at(&Functions::log, 1.0f), 0.0f);
    EXPECT_TRUE(std::signbit(at(&Functions::tanh, -0.0f)));
    EXPECT_EQ(at(&Functions::tanh, -inf), -1.0f);
    EXPECT_EQ(at(&Functions::sigmoid, inf), 1.0f);
    EXPECT_EQ(at(&Functions::sigmoid, -inf), 0.0f);
    EXPECT_EQ(at(&Functions::sigmoid, 0.0f), 0.5f);
    EXPECT_EQ(at(&Functions::erf, inf), 1.0f);
    EXPECT_EQ(at(&Functions::erf, -inf), -1.0f);
    for (const auto function :
         {&Functions::exp, &Functions::log, &Functions::tanh, &Functions::sigmoid, &Functions::erf}) {
      EXPECT_TRUE(std::isnan(at(function, nan)));
    }
  }
}

TEST(Conversion, From16BitsAllPatterns) {
  std::vector<BFloat16> b(65536);
  std::vector<Half> h(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) {
    b[i].bits = static_cast<std::uint16_t>(i);
    h[i].bits = static_cast<std::uint16_t>(i);
  }
  for (const Set& set : sets()) {
    SCOPED_TRACE(name_of(set.isa));
    std::vector<float> from_b(65536), from_h(65536);
    set.functions->from_bf16(b.data(), from_b.data(), 65536);
    set.functions->from_f16(h.data(), from_h.data(), 65536);
    for (std::size_t i = 0; i < 65536; ++i) {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(from_b[i]), std::bit_cast<std::uint32_t>(static_cast<float>(b[i]))) << i;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(from_h[i]), std::bit_cast<std::uint32_t>(static_cast<float>(h[i]))) << i;
    }
  }
}

TEST(Conversion, To16Bits) {
  std::vector<float> x = sweep();
  // Every value that lies half way between two neighbours of either type, and its two neighbours.
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const std::uint32_t half_b = (i << 16) | 0x8000u;
    const float lo = static_cast<float>(std::bit_cast<Half>(static_cast<std::uint16_t>(i)));
    const float hi = static_cast<float>(std::bit_cast<Half>(static_cast<std::uint16_t>(i + 1)));
    const std::uint32_t half_h = std::bit_cast<std::uint32_t>(lo * 0.5f + hi * 0.5f);
    for (const std::uint32_t d : {~0u, 0u, 1u}) {
      x.push_back(from_bits(half_b + d));
      x.push_back(from_bits(half_h + d));
    }
  }
  const auto n = static_cast<std::int64_t>(x.size());
  for (const Set& set : sets()) {
    SCOPED_TRACE(name_of(set.isa));
    std::vector<BFloat16> b(x.size());
    std::vector<Half> h(x.size());
    set.functions->to_bf16(x.data(), b.data(), n);
    set.functions->to_f16(x.data(), h.data(), n);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(b[i].bits, BFloat16(x[i]).bits) << std::hexfloat << x[i];
      ASSERT_EQ(h[i].bits, Half(x[i]).bits) << std::hexfloat << x[i];
    }
  }
}

TEST(Lanes, TailsTouchNothingElse) {
  // Arrays that end where a page ends would fault; here the neighbours are checked.
  for (const Set& set : sets()) {
    SCOPED_TRACE(name_of(set.isa));
    for (std::int64_t n = 0; n <= 40; ++n) {
      std::vector<float> x(static_cast<std::size_t>(n) + 32, 4.0f), y(static_cast<std::size_t>(n) + 32, -1.0f);
      std::vector<BFloat16> b(y.size(), BFloat16(-1.0f));
      std::vector<Half> h(y.size(), Half(-1.0f));
      set.functions->sqrt(x.data(), y.data(), n);
      set.functions->to_bf16(x.data(), b.data(), n);
      set.functions->to_f16(x.data(), h.data(), n);
      for (std::size_t i = 0; i < y.size(); ++i) {
        const bool inside = i < static_cast<std::size_t>(n);
        ASSERT_EQ(y[i], inside ? 2.0f : -1.0f) << n << " " << i;
        ASSERT_EQ(static_cast<float>(b[i]), inside ? 4.0f : -1.0f) << n << " " << i;
        ASSERT_EQ(static_cast<float>(h[i]), inside ? 4.0f : -1.0f) << n << " " << i;
      }
    }
  }
}

TEST(Lanes, SumAndMax) {
  for (const Set& set : sets()) {
    SCOPED_TRACE(name_of(set.isa));
    const int n = set.functions->lanes();
    std::vector<float> x(static_cast<std::size_t>(n));
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += x[static_cast<std::size_t>(i)] = static_cast<float>((i * 7) % n - 3);
    EXPECT_EQ(set.functions->sum_lanes(x.data()), sum);
    EXPECT_EQ(set.functions->max_lanes(x.data()), *std::max_element(x.begin(), x.end()));
    for (float& v : x) v = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(set.functions->max_lanes(x.data()), -std::numeric_limits<float>::infinity());
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::vector<float> with_nan(x.size(), 1.0f);
      with_nan[i] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(set.functions->max_lanes(with_nan.data()))) << i;
    }
  }
}

}  // namespace

}  // namespace lamina
