// The arithmetic of reductions, by every instruction set, against a loop of doubles or integers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/reduce.hpp"

namespace lamina::comm {
namespace {

constexpr Reduction kReductions[] = {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max,
                                     Reduction::product};

template <class T>
T plain(Reduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return T(plain(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (reduction) {
      case Reduction::min: return std::isnan(a) || std::isnan(b) ? a + b : a < b ? a : b;
      case Reduction::max: return std::isnan(a) || std::isnan(b) ? a + b : a > b ? a : b;
      case Reduction::product: return a * b;
      default: return a + b;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    switch (reduction) {
      case Reduction::min: return std::min(a, b);
      case Reduction::max: return std::max(a, b);
      case Reduction::product:
        return static_cast<T>(static_cast<U>(std::uint64_t{static_cast<U>(a)} * std::uint64_t{static_cast<U>(b)}));
      default: return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    }
  }
}

template <class T>
bool same(T x, T y) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
    return same(static_cast<float>(x), static_cast<float>(y));
  else if constexpr (std::is_floating_point_v<T>)
    return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
  else
    return x == y;
}

template <class T>
std::vector<T> some(std::int64_t count, std::mt19937& random) {
  std::vector<T> v;
  std::normal_distribution<double> normal(0, 3);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T>) {
      v.push_back(static_cast<T>((std::uint64_t{random()} << 32) | random()));  // extremes: sums overflow
    } else {
      double x = normal(random);
      constexpr double kOdd[] = {std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 0.0,
                                 -0.0,
                                 1e-8,
                                 6e4};
      if (random() % 8 == 0) x = kOdd[random() % std::size(kOdd)];
      if constexpr (std::is_same_v<T, double>)
        v.push_back(x);
      else
        v.push_back(T(static_cast<float>(x)));
    }
  }
  return v;
}

template <class T>
void compare(const ReduceLoop& loop) {
  std::mt19937 random(7);
  for (const Reduction reduction : kReductions) {
    for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 511, 512, 513, 1025}) {
      for (const std::size_t shift : {std::size_t{0}, std::size_t{1}, sizeof(T)}) {
        for (const int alias : {0, 1, 2}) {  // to is apart, is a, is b
          const std::vector<T> a = some<T>(count, random), b = some<T>(count, random);
          const std::size_t bytes = a.size() * sizeof(T);
          std::vector<std::byte> ma(bytes + 16), mb(bytes + 16), mt(bytes + 16, std::byte{0x5a});
          std::byte* pa = ma.data() + shift;
          std::byte* pb = mb.data() + shift;
          std::ranges::copy(std::as_bytes(std::span(a)), pa);
          std::ranges::copy(std::as_bytes(std::span(b)), pb);
          std::byte* to = alias == 0 ? mt.data() + shift : alias == 1 ? pa : pb;
          const std::byte after = to[bytes];
          loop.run(dtype_of<T>, reduction, to, pa, pb, count);
          ASSERT_EQ(to[bytes], after) << "written past the end";
          for (std::size_t i = 0; i < a.size(); ++i) {
            T got;
            std::memcpy(&got, to + i * sizeof(T), sizeof got);
            ASSERT_TRUE(same(got, plain(reduction, a[i], b[i])))
                << loop.name << " " << name_of(dtype_of<T>) << " " << name_of(reduction) << " " << i << " of " << count;
          }
        }
      }
    }
  }
}

TEST(Reduce, EveryTypeByEveryInstructionSet) {
  ASSERT_EQ(reduce_loops().back().name, "baseline");
  for (const ReduceLoop& loop : reduce_loops()) {
    compare<float>(loop);
    compare<double>(loop);
    compare<Half>(loop);
    compare<BFloat16>(loop);
    compare<std::int32_t>(loop);
    compare<std::int64_t>(loop);
    compare<std::uint8_t>(loop);
  }
}

TEST(Reduce, BoolsAreAndAndOr) {
  const bool a[] = {false, false, true, true}, b[] = {false, true, false, true};
  bool low[4], high[4];
  auto bytes = [](auto* p) { return reinterpret_cast<const std::byte*>(p); };
  reduce(DType::boolean, Reduction::min, reinterpret_cast<std::byte*>(low), bytes(a), bytes(b), 4);
  reduce(DType::boolean, Reduction::max, reinterpret_cast<std::byte*>(high), bytes(a), bytes(b), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(low[i], a[i] && b[i]);
    EXPECT_EQ(high[i], a[i] || b[i]);
  }
}

TEST(Reduce, DivideRoundsOnce) {
  std::mt19937 random(9);
  const auto check = [&]<class T>(T) {
    for (const double by : {2.0, 3.0, 7.0}) {
      const std::vector<T> values = some<T>(37, random);
      std::vector<std::byte> memory(values.size() * sizeof(T) + 1);
      std::ranges::copy(std::as_bytes(std::span(values)), memory.data() + 1);
      divide(dtype_of<T>, memory.data() + 1, 37, by);
      for (std::size_t i = 0; i < values.size(); ++i) {
        T got;
        std::memcpy(&got, memory.data() + 1 + i * sizeof(T), sizeof got);
        T want;
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          want = T(static_cast<float>(values[i]) / static_cast<float>(by));
        } else {
          want = values[i] / static_cast<T>(by);
        }
        ASSERT_TRUE(same(got, want)) << name_of(dtype_of<T>) << " " << i << " by " << by;
      }
    }
  };
  check(float{});
  check(double{});
  check(Half{});
  check(BFloat16{});
}

TEST(Reduce, WhatHasNoMeaningIsRefused) {
  EXPECT_THROW(check_reduction(DType::i32, Reduction::mean), ValueError);
  EXPECT_THROW(check_reduction(DType::u8, Reduction::mean), ValueError);
  EXPECT_THROW(check_reduction(DType::boolean, Reduction::sum), ValueError);
  EXPECT_NO_THROW(check_reduction(DType::boolean, Reduction::max));
  EXPECT_NO_THROW(check_reduction(DType::bf16, Reduction::mean));
}

}  // namespace
}  // namespace lamina::comm
