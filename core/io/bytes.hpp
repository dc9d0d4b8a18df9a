// What every file format needs: fixed byte orders, checked sizes, safe quoting of what a file says, and a tensor's
// elements as bytes. Numbers from files are hostile: each goes through a function here before it sizes anything.
// Thread-safety: all functions are pure, but for the tensor ones, which are as their tensor.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/shape.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina {

/// An unsigned integer stored least significant byte first. Needs sizeof(T) bytes at `from`.
template <class T>
constexpr T load_little(const std::byte* from) noexcept {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) value = static_cast<T>((value << 8) | static_cast<T>(from[i]));
  return value;
}

/// An unsigned integer stored most significant byte first. Needs sizeof(T) bytes at `from`.
template <class T>
constexpr T load_big(const std::byte* from) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>((value << 8) | static_cast<T>(from[i]));
  return value;
}

template <class T>
constexpr void store_little(std::byte* to, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>((value >> (8 * i)) & 0xffu);
}

/// Reverses the bytes of every item; data.size() is a multiple of `item`.
void swap_items(std::span<std::byte> data, std::size_t item) noexcept;

/// Turns little-endian items into the host's order or back: nothing to do on all but big-endian hosts.
inline void little_to_host(std::span<std::byte> data, std::size_t item) noexcept {
  if constexpr (std::endian::native == std::endian::big) swap_items(data, item);
}

/// Text from a path or a file for a message: in quotes, control bytes as \xNN, long text cut in the middle.
std::string quote(std::string_view text);

/// The shape of extents read from `file`. Throws FormatError (not ShapeError) for a negative extent, more than 8 dims
/// or a count that overflows 63 bits.
Shape file_shape(std::string_view where, std::string_view file, std::span<const std::int64_t> dims);

/// shape.count() * item_bytes. Throws FormatError on overflow of 63 bits.
std::uint64_t file_bytes(std::string_view where, std::string_view file, const Shape& shape, std::size_t item_bytes);

/// Throws FormatError unless every byte is 0 or 1: any other value in a bool is undefined behaviour later on.
void check_bools(std::string_view where, std::string_view file, std::span<const std::byte> data);

/// Calls use(bytes) with the tensor's elements in row-major order and the host's byte order: in place when the host
/// can reach them and they are contiguous, else from a copy that lives for the call. Blocks.
/// Throws DeviceError for an undefined tensor or a device without storage.
void with_bytes(const Tensor& tensor, const std::function<void(std::span<const std::byte>)>& use);

/// A new tensor whose bytes `fill` writes, row-major: in place when the host can reach the device's memory, else by
/// way of a host buffer. `fill` is not called where the device has no storage, nor for an empty tensor.
Tensor tensor_from(const Device& device, const Shape& shape, DType dtype,
                   const std::function<void(std::span<std::byte>)>& fill);

}  // namespace lamina
