// IDX, the format of the MNIST family: 0 0 <type> <rank>, <rank> big-endian 32-bit extents, then the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/core/io/file.hpp"
#include "lamina/core/shape.hpp"

namespace lamina {

/// An array of unsigned bytes in row-major order. A value.
class IdxArray {
 public:
  /// Takes the file's bytes. `name` is for messages. Throws FormatError for a wrong magic number, no dims or more than
  /// 8, extents whose product overflows, and any size but exactly the one the extents give; DTypeError for the
  /// format's other element types.
  IdxArray(std::vector<std::byte> file, std::string_view name);

  const Shape& shape() const noexcept { return shape_; }
  std::span<const std::uint8_t> values() const noexcept {
    return {reinterpret_cast<const std::uint8_t*>(file_.data()) + header_, file_.size() - header_};
  }
  /// Bytes before the first element, and the file's bytes themselves, given away without a copy.
  std::size_t header_bytes() const noexcept { return header_; }
  std::vector<std::byte> release() && noexcept { return std::move(file_); }

 private:
  std::vector<std::byte> file_;
  std::size_t header_ = 0;
  Shape shape_;
};

/// Reads a plain or gzip IDX file of at most `max_bytes` unpacked. Throws IoError, FormatError, DTypeError.
IdxArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxFileBytes);

}  // namespace lamina
