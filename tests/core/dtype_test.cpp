#include "lamina/core/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lamina/core/error.hpp"

namespace lamina {
namespace {

template <class T>
T from_bits(std::uint32_t bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

// The value of a 16-bit float by its definition.
double by_definition(std::uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double mantissa = bits & ((1u << mantissa_bits) - 1u);
  double value;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + std::ldexp(1, mantissa_bits), exponent - bias - mantissa_bits);
  }
  return (bits & 0x8000u) != 0 ? -value : value;
}

template <class T>
class SixteenBits : public ::testing::Test {
 public:
  static constexpr int exponent_bits = std::is_same_v<T, Half> ? 5 : 8;
  static constexpr int mantissa_bits = std::is_same_v<T, Half> ? 10 : 7;
  static double value(std::uint32_t bits) { return by_definition(bits, exponent_bits, mantissa_bits); }
  static constexpr std::uint32_t infinity = ((1u << exponent_bits) - 1u) << mantissa_bits;
};
using SixteenBitTypes = ::testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(SixteenBits, SixteenBitTypes);

TYPED_TEST(SixteenBits, every_value_to_float_and_back) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto f = static_cast<float>(from_bits<TypeParam>(bits));
    const double expected = this->value(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(f)) << bits;
      const auto back = TypeParam(f).bits;
      ASSERT_TRUE(std::isnan(this->value(back))) << bits;
      ASSERT_EQ(back & 0x8000u, bits & 0x8000u) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(f), expected) << bits;
      ASSERT_EQ(std::signbit(f), (bits & 0x8000u) != 0) << bits;
      ASSERT_EQ(TypeParam(f).bits, bits);
    }
  }
}

// Between neighbours: half way goes to the even one, a hair beside it to the nearer one.
TYPED_TEST(SixteenBits, rounds_to_nearest_even) {
  for (std::uint32_t bits = 0; bits + 1 <= this->infinity; ++bits) {
    const double low = this->value(bits);
    double high = this->value(bits + 1);
    if (bits + 1 == this->infinity) high = 2 * low - this->value(bits - 1);  // where the next would be
    const double middle = (low + high) / 2;
    const auto f = static_cast<float>(middle);
    if (static_cast<double>(f) != middle) continue;  // beyond what a float can hold
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(TypeParam(f).bits, even) << bits;
    ASSERT_EQ(TypeParam(-f).bits, even | 0x8000u) << bits;
    ASSERT_EQ(TypeParam(std::nextafter(f, 0.0f)).bits, bits) << bits;
    const float above = std::nextafter(f, std::numeric_limits<float>::infinity());
    ASSERT_EQ(TypeParam(above).bits, bits + 1) << bits;
  }
}

TYPED_TEST(SixteenBits, extremes) {
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(TypeParam(inf).bits, this->infinity);
  EXPECT_EQ(TypeParam(-inf).bits, this->infinity | 0x8000u);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, this->infinity);
  EXPECT_EQ(TypeParam(0.0f).bits, 0u);
  EXPECT_EQ(TypeParam(-0.0f).bits, 0x8000u);
  EXPECT_TRUE(std::isnan(this->value(TypeParam(std::numeric_limits<float>::quiet_NaN()).bits)));
  // A NaN whose payload lies in the bits that are dropped stays a NaN.
  EXPECT_TRUE(std::isnan(this->value(TypeParam(std::bit_cast<float>(0x7f800001u)).bits)));
  EXPECT_TRUE(std::isnan(this->value(TypeParam(std::bit_cast<float>(0xffffffffu)).bits)));
  EXPECT_EQ(TypeParam(1e-45f).bits, 0u);
}

TEST(DType, names_round_trip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(name_of(DType::boolean), "bool");
  EXPECT_EQ(name_of(DType::bf16), "bf16");
  try {
    dtype_from_name("float");
    FAIL();
  } catch (const DTypeError& e) {
    EXPECT_STREQ(e.what(), "dtype: unknown name 'float'; known: f32, f64, f16, bf16, i32, i64, u8, bool");
  }
}

TEST(DType, visit_gives_the_type_of_each) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    visit(dtype, [&]<class T>() {
      EXPECT_EQ(dtype_of<T>, dtype);
      EXPECT_EQ(sizeof(T), size_of(dtype));
    });
  }
  EXPECT_TRUE(is_floating(DType::f16));
  EXPECT_TRUE(is_floating(DType::f64));
  EXPECT_FALSE(is_floating(DType::i32));
  EXPECT_FALSE(is_floating(DType::boolean));
}

}  // namespace
}  // namespace lamina
