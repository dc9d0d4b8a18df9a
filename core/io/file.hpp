// Reading files: whole, in ranges, and through gzip; and the hash that checkpoints are verified by.
// A file that cannot be read is an IoError naming the path and the system's reason; contents that are not what they
// should be are a FormatError. Nothing is allocated from a number that the file itself claims.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/io/descriptor.hpp"

namespace lamina {

/// The default bound on what is read into memory whole: 16 GiB.
inline constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 30;

/// A regular file opened for reading at any offset. Const members are thread-safe.
class ReadFile {
 public:
  /// Throws IoError; also for directories, pipes and devices (it never blocks on one).
  explicit ReadFile(std::filesystem::path path);

  const std::filesystem::path& path() const noexcept { return path_; }
  /// Bytes when it was opened.
  std::uint64_t size() const noexcept { return size_; }
  /// Fills `out` from `offset` on. Throws IoError, also when the file ends first.
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

/// The whole file. Throws IoError, FormatError when it is larger than `max_bytes`.
std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxFileBytes);

/// `count` bytes from `offset` on. Throws IoError, also when they are not all there (nothing is allocated then).
std::vector<std::byte> read_file_range(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t count);

/// As read_file, but a file that begins as gzip does is unpacked; `max_bytes` bounds the unpacked size, so that a
/// small file cannot exhaust memory. Throws IoError; FormatError for gzip that is cut short, corrupt (CRC and length
/// are checked), followed by anything but another gzip member, or too large.
std::vector<std::byte> read_maybe_gzip(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxFileBytes);

/// gzip data in memory, unpacked; `name` is for messages. Throws FormatError as above.
std::vector<std::byte> gunzip(std::span<const std::byte> data, std::string_view name,
                              std::uint64_t max_bytes = kMaxFileBytes);

/// XXH3, 64 bits, seed 0.
std::uint64_t hash_bytes(std::span<const std::byte> data) noexcept;
/// The same of a file's contents, read in pieces. Throws IoError.
std::uint64_t hash_file(const std::filesystem::path& path);

}  // namespace lamina
