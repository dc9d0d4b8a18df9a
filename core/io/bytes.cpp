#include "lamina/core/io/bytes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace lamina {

void swap_items(std::span<std::byte> data, std::size_t item) noexcept {
  if (item < 2) return;
  for (std::size_t at = 0; at + item <= data.size(); at += item) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at), data.begin() + static_cast<std::ptrdiff_t>(at + item));
  }
}

std::string quote(std::string_view text) {
  constexpr std::size_t kKept = 160;  // bytes kept at each end
  std::string out = "'";
  const auto append = [&](std::string_view part) {
    for (const char c : part) {
      const auto u = static_cast<unsigned char>(c);
      if (u < 0x20 || u == 0x7f) {
        out += fmt::format("\\x{:02x}", u);
      } else {
        out += c;
      }
    }
  };
  // A cut may fall inside a UTF-8 sequence: step over continuation bytes.
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0u) == 0x80u; };
  if (text.size() <= 2 * kKept) {
    append(text);
  } else {
    std::size_t head = kKept;
    while (head > kKept - 3 && continues(head)) --head;
    std::size_t tail = text.size() - kKept;
    while (tail < text.size() - kKept + 3 && continues(tail)) ++tail;
    append(text.substr(0, head));
    out += "...";
    append(text.substr(tail));
  }
  return out += '\'';
}

Shape file_shape(std::string_view where, std::string_view file, std::span<const std::int64_t> dims) {
  // Zero extents count as one here: strides are products of the others and must not overflow either.
  std::int64_t reach = 1;
  for (const std::int64_t d : dims) {
    if (__builtin_mul_overflow(reach, std::max<std::int64_t>(d, 1), &reach)) {
      fail<FormatError>(where, "{}: the product of the extents ({}) overflows 63 bits", quote(file),
                        fmt::join(dims, ","));
    }
  }
  try {
    return Shape(dims);
  } catch (const ShapeError& error) {
    fail<FormatError>(where, "{}: {}", quote(file), error.what());
  }
}

std::uint64_t file_bytes(std::string_view where, std::string_view file, const Shape& shape, std::size_t item_bytes) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.count(), static_cast<std::int64_t>(item_bytes), &bytes)) {
    fail<FormatError>(where, "{}: {} items of {} bytes overflow 63 bits", quote(file), to_string(shape), item_bytes);
  }
  return static_cast<std::uint64_t>(bytes);
}

void check_bools(std::string_view where, std::string_view file, std::span<const std::byte> data) {
  const auto bad = std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == data.end()) return;
  fail<FormatError>(where, "{}: element {} of a bool array has the byte {}; 0 and 1 are allowed", quote(file),
                    bad - data.begin(), std::to_integer<int>(*bad));
}

void with_bytes(const Tensor& tensor, const std::function<void(std::span<const std::byte>)>& use) {
  if (!tensor.defined()) fail<DeviceError>("tensor", "an undefined tensor has no bytes");
  if (tensor.count() == 0) return use({});
  if (!tensor.storage().device().has_storage) fail<DeviceError>("tensor", "{} has no elements", to_string(tensor));
  visit(tensor.dtype(), [&]<class T>() {
    if (tensor.is_contiguous() && tensor.storage().device().backend->host_accessible()) {
      use(std::as_bytes(host<T>(tensor)));
    } else if constexpr (std::is_same_v<T, bool>) {
      const std::vector<bool> bits = to_vector<bool>(tensor);
      const std::vector<std::uint8_t> copy(bits.begin(), bits.end());
      use(std::as_bytes(std::span(copy)));
    } else {
      const std::vector<T> copy = to_vector<T>(tensor);
      use(std::as_bytes(std::span(copy)));
    }
  });
}

Tensor tensor_from(const Device& device, const Shape& shape, DType dtype,
                   const std::function<void(std::span<std::byte>)>& fill) {
  Tensor tensor = Tensor::empty(device, shape, dtype);
  if (tensor.count() == 0 || !device.state()->has_storage) return tensor;
  if (device.host_accessible()) {
    visit(dtype, [&]<class T>() { fill(std::as_writable_bytes(host_mut<T>(tensor))); });
    return tensor;
  }
  std::vector<std::byte> staging(static_cast<std::size_t>(tensor.meta().bytes()));
  fill(staging);
  return Tensor::from_bytes(device, shape, dtype, staging);
}

}  // namespace lamina
