#include "lamina/core/dtype.hpp"

#include "lamina/core/error.hpp"

namespace lamina {

Half::Half(float value) noexcept {
  std::uint32_t u = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  u &= 0x7fffffffu;
  if (u > 0x7f800000u) {
    bits = static_cast<std::uint16_t>(sign | 0x7e00u | ((u >> 13) & 0x3ffu));
  } else if (u >= 0x477ff000u) {  // rounds to infinity
    bits = static_cast<std::uint16_t>(sign | 0x7c00u);
  } else if (u >= 0x38800000u) {  // normal in binary16
    const std::uint32_t rounded = u + 0xfffu + ((u >> 13) & 1u);
    bits = static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  } else {
    // Subnormal: adding 0.5 lets the float adder do the rounding at the right bit.
    const float shifted = std::bit_cast<float>(u) + 0.5f;
    bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
}

Half::operator float() const noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000u : 0;  // as the conversion instructions do
    return std::bit_cast<float>(sign | 0x7f800000u | quiet | (mantissa << 13));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

namespace {
constexpr std::string_view kNames[kDTypeCount] = {"f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"};
}

std::string_view name_of(DType dtype) noexcept { return kNames[static_cast<int>(dtype)]; }

DType dtype_from_name(std::string_view name) {
  for (int i = 0; i < kDTypeCount; ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  fail<DTypeError>("dtype", "unknown name '{}'; known: f32, f64, f16, bf16, i32, i64, u8, bool", name);
}

}  // namespace lamina
