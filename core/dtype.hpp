// DType: the element type of a tensor, known at run time, and the bridge to C++ types.
// Thread-safety: all functions are pure.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lamina {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, boolean };
inline constexpr int kDTypeCount = 8;

/// IEEE binary16 storage. Arithmetic happens in float; conversion from float rounds to nearest even.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(Half, Half) = default;
};

/// bfloat16 storage: the upper half of a float. Conversion rounds to nearest even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) noexcept {
    std::uint32_t u = std::bit_cast<std::uint32_t>(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<std::uint16_t>((u >> 16) | 0x40u);
    } else {
      bits = static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const noexcept { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  friend bool operator==(BFloat16, BFloat16) = default;
};

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  constexpr std::size_t sizes[] = {4, 8, 2, 2, 4, 8, 1, 1};
  return sizes[static_cast<int>(dtype)];
}

/// "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool".
std::string_view name_of(DType dtype) noexcept;

/// The dtype of that name. Throws DTypeError naming the known ones.
DType dtype_from_name(std::string_view name);

constexpr bool is_floating(DType dtype) noexcept { return dtype <= DType::bf16; }

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct DTypeOf<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct DTypeOf<Half> : std::integral_constant<DType, DType::f16> {};
template <>
struct DTypeOf<BFloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct DTypeOf<std::int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct DTypeOf<std::int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct DTypeOf<std::uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct DTypeOf<bool> : std::integral_constant<DType, DType::boolean> {};

template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_const_t<T>>::value;

/// The dtype sums of a floating dtype are accumulated in: f32 for bf16 and f16, else itself.
constexpr DType accumulator_of(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}
/// The type sums of T are accumulated in.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};

/// Calls f.template operator()<T>() with the C++ type of `dtype`. The only switch over dtypes in the engine.
template <class F>
decltype(auto) visit(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::boolean: break;
  }
  return f.template operator()<bool>();
}

}  // namespace lamina
