// Array: the values of one operand on the host, dense, in its dtype.
#pragma once

#include <cstring>
#include <vector>

#include "lamina/core/tensor.hpp"

namespace lamina::harness {

struct Array {
  Meta meta;
  std::vector<std::byte> bytes;

  Array() = default;
  explicit Array(const Meta& m, int fill = 0) : meta(m), bytes(static_cast<std::size_t>(m.bytes()), std::byte(fill)) {}
  std::int64_t count() const { return meta.shape.count(); }
  friend bool operator==(const Array& a, const Array& b) { return a.meta == b.meta && a.bytes == b.bytes; }
};

/// Rounded to the dtype, to nearest even; integers are truncated.
Array array_of(const Meta& meta, std::span<const double> values);
Array array_of(const Meta& meta, std::span<const std::int64_t> values);
std::vector<double> real_values(const Array& array);
std::vector<std::int64_t> index_values(const Array& array);
/// The elements of a tensor of any layout and device, bit for bit. Waits for them.
Array array_of(const Tensor& tensor);
Tensor tensor_of(const Device& device, const Array& array);

/// FNV-1a.
std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash = 0xcbf29ce484222325u);

/// "(2,3)" for the element with row-major number n.
std::string index_string(const Shape& shape, std::int64_t n);

}  // namespace lamina::harness
