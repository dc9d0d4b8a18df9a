// The error of long sums. Lanes are added in floats a few times and then in doubles, so that it is a few units of the
// last place of the sum of |x|, whatever the length.
#include <cmath>

#include "lamina/core/rng.hpp"
#include "lamina/kernels/batch_norm/op.hpp"
#include "lamina/kernels/mean/op.hpp"
#include "lamina/kernels/sum/op.hpp"
#include "tests/elementwise/support.hpp"

namespace lamina {
namespace {

constexpr std::size_t kLong = 10'000'000;

void expect_sum(const std::vector<float>& x, double ulps) {
  double exact = 0, size = 0, low = 0;  // Neumaier's sum
  for (const float f : x) {
    const auto v = static_cast<double>(f);
    const double next = exact + v;
    low += std::abs(exact) >= std::abs(v) ? (exact - next) + v : (v - next) + exact;
    exact = next;
    size += std::abs(v);
  }
  exact += low;
  on_every_isa([&](const Device& device) {
    const Tensor t = vector_of(device, x);
    const double n = static_cast<double>(x.size());
    // The last rounding is that of the result itself.
    const double allowed = ulps * 0x1p-24 * size + 0x1p-24 * std::abs(exact);
    EXPECT_NEAR(sum(t).item(), exact, allowed);
    EXPECT_NEAR(mean(t).item() * n, exact, allowed + 0x1p-24 * std::abs(exact));
  });
}

// Every addition rounds the same way.
TEST(LongSums, OfEqualValues) {
  for (const float value : {0.1f, 1.0f / 3, 0x1.fffffep0f}) expect_sum(std::vector<float>(kLong, value), 3);
}

TEST(LongSums, OfBothSigns) {
  const Rng rng(3);
  std::vector<float> x(kLong);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rng.uniform(0, i) - 0.5f;
  expect_sum(x, 0.01);  // roundings of both signs: far below that of |x|
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 0.1f : -0.1f;
  expect_sum(x, 0);
  x[kLong / 2] = 1e8f;  // large beside all the others
  x[kLong / 2 + 1] = -1e8f;
  expect_sum(x, 3);
}

// Along the other dim: lanes are columns.
TEST(LongSums, OfColumns) {
  on_every_isa([](const Device& device) {
    const std::vector<float> x(1'000'000 * 3, 0.1f);
    for (const float s : to_vector<float>(sum(Tensor::from(device, {1'000'000, 3}, x), {0}))) {
      EXPECT_NEAR(s, 1e6 * static_cast<double>(0.1f), 4 * 0x1p-24 * 1e5);
    }
  });
}

// The op's own samples stay near 0, where the f32 mean that backward reads is exact enough; forward needs no such care.
TEST(Variance, OfValuesFarFromZeroDoesNotCancel) {
  constexpr std::int64_t kRows = 300, kChannels = 20;
  const Rng rng(1, 2);
  std::vector<float> x(kRows * kChannels);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(1e4 + 4 * rng.uniform(0, i));
  on_every_isa([&](const Device& device) {
    const Tensor gamma = Tensor::from(device, {kChannels}, std::vector<float>(kChannels, 1.0f));
    const Tensor beta = Tensor::zeros(device, {kChannels});
    const auto variance = to_vector<float>(batch_norm(Tensor::from(device, {kRows, kChannels}, x), gamma, beta, {})[2]);
    for (std::size_t c = 0; c < kChannels; ++c) {
      double mean = 0, squares = 0;
      for (std::size_t r = 0; r < kRows; ++r) mean += static_cast<double>(x[r * kChannels + c]) / kRows;
      for (std::size_t r = 0; r < kRows; ++r) squares += std::pow(static_cast<double>(x[r * kChannels + c]) - mean, 2);
      EXPECT_NEAR(variance[c], squares / kRows, 1e-6 * squares / kRows) << c;
    }
  });
}

}  // namespace
}  // namespace lamina
