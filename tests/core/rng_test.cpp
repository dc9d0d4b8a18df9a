#include "lamina/core/rng.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace lamina {
namespace {

// Known answers of Random123's kat_vectors (philox4x32, 10 rounds).
TEST(Philox, known_answers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}));
  const std::uint32_t f = 0xffffffffu;
  EXPECT_EQ(philox4x32({f, f, f, f}, {f, f}), (PhiloxCounter{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}));
  EXPECT_EQ(philox4x32({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}, {0xa4093822u, 0x299f31d0u}),
            (PhiloxCounter{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}));
}

static_assert(philox4x32({0, 0, 0, 0}, {0, 0})[0] == 0x6627e8d5u, "usable at compile time");

TEST(Rng, element_numbers_do_not_depend_on_who_asks) {
  const Rng rng(7, 3, 11);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_EQ(rng.bits(5, i), rng.quad(5, i / 4)[i % 4]);
  EXPECT_EQ(Rng(7, 3, 11).bits(5, 9), rng.bits(5, 9));
}

TEST(Rng, every_part_of_the_key_and_counter_matters) {
  std::set<std::uint32_t> seen;
  std::size_t drawn = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    for (std::uint64_t layer = 0; layer < 4; ++layer) {
      for (std::uint64_t step = 0; step < 4; ++step) {
        for (std::uint64_t example : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
          for (std::uint64_t element : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}, std::uint64_t{1} << 34}) {
            seen.insert(Rng(seed, layer, step).bits(example, element));
            ++drawn;
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), drawn);  // 32-bit words: a collision among 768 has chance 7e-5
}

constexpr std::uint64_t kDraws = 1 << 20;

TEST(Rng, uniform_moments) {
  const Rng rng(1);
  double sum = 0, squares = 0;
  std::array<int, 16> bins{};
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double u = static_cast<double>(rng.uniform(0, i));
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    ++bins[static_cast<std::size_t>(u * 16)];
  }
  const double n = static_cast<double>(kDraws);
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
  double chi = 0;
  for (const int count : bins) chi += (count - n / 16) * (count - n / 16) / (n / 16);
  EXPECT_LT(chi, 45);  // 15 degrees of freedom: beyond with chance 7e-5
}

TEST(Rng, normal_moments) {
  const Rng rng(2);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0, pairs = 0, before = 0;
  int beyond_two = 0;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    const double x = rng.normal(3, i);
    ASSERT_TRUE(std::isfinite(x));
    m1 += x;
    m2 += x * x;
    m3 += x * x * x;
    m4 += x * x * x * x;
    pairs += x * before;
    before = x;
    beyond_two += std::abs(x) > 2 ? 1 : 0;
  }
  const double n = static_cast<double>(kDraws);
  EXPECT_NEAR(m1 / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(m2 / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(m3 / n, 0, 5 * std::sqrt(15 / n));
  EXPECT_NEAR(m4 / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(pairs / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(beyond_two / n, 0.0455003, 5 * std::sqrt(0.0434 / n));
}

TEST(Rng, below_is_in_range_and_even) {
  const Rng rng(3);
  std::array<int, 7> bins{};
  for (std::uint64_t i = 0; i < 70000; ++i) {
    const std::uint64_t v = rng.below(7, 1, i);
    ASSERT_LT(v, 7u);
    ++bins[static_cast<std::size_t>(v)];
  }
  for (const int count : bins) EXPECT_NEAR(count, 10000, 5 * std::sqrt(10000.0));
  EXPECT_EQ(rng.below(1, 0, 0), 0u);
  const std::uint64_t wide = std::uint64_t{1} << 63;
  bool upper_half = false;
  for (std::uint64_t i = 0; i < 64; ++i) upper_half = upper_half || rng.below(wide, 0, i) > wide / 2;
  EXPECT_TRUE(upper_half);
}

TEST(Rng, unit_float_never_reaches_one) {
  EXPECT_EQ(unit_float(0), 0.0f);
  EXPECT_LT(unit_float(0xffffffffu), 1.0f);
}

}  // namespace
}  // namespace lamina
