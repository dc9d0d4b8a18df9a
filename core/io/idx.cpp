#include "lamina/core/io/idx.hpp"

#include <array>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina {

namespace {

constexpr unsigned kUnsignedByte = 0x08;

std::string_view type_name(unsigned code) {
  switch (code) {
    case 0x09: return "signed byte";
    case 0x0B: return "16-bit integer";
    case 0x0C: return "32-bit integer";
    case 0x0D: return "32-bit float";
    case 0x0E: return "64-bit float";
    default: return {};
  }
}

}  // namespace

IdxArray::IdxArray(std::vector<std::byte> file, std::string_view name) : file_(std::move(file)) {
  if (file_.size() < 4) fail<FormatError>("idx", "{} has {} bytes; the magic number has 4", quote(name), file_.size());
  const auto magic = load_big<std::uint32_t>(file_.data());
  const unsigned type = (magic >> 8) & 0xffu;
  const unsigned rank = magic & 0xffu;
  if (magic >> 16 != 0 || (type != kUnsignedByte && type_name(type).empty())) {
    fail<FormatError>("idx", "{} begins with {:#010x}, which is no IDX magic number", quote(name), magic);
  }
  if (type != kUnsignedByte) {
    fail<DTypeError>("idx", "{} holds elements of type {:#04x} ({}); only 0x08 (unsigned byte) is supported",
                     quote(name), type, type_name(type));
  }
  if (rank < 1 || rank > kMaxRank) {
    fail<FormatError>("idx", "{} has {} dims; 1 to {} are supported", quote(name), rank, kMaxRank);
  }
  header_ = 4 + 4 * std::size_t{rank};
  if (file_.size() < header_) {
    fail<FormatError>("idx", "{} has {} bytes; a header of {} dims has {}", quote(name), file_.size(), rank, header_);
  }
  std::array<std::int64_t, kMaxRank> dims{};
  for (std::size_t i = 0; i < rank; ++i) dims[i] = load_big<std::uint32_t>(file_.data() + 4 + 4 * i);
  shape_ = file_shape("idx", name, std::span<const std::int64_t>(dims.data(), rank));
  if (file_.size() - header_ != static_cast<std::uint64_t>(shape_.count())) {
    fail<FormatError>("idx", "{} has {} bytes of elements; {} says {}", quote(name), file_.size() - header_,
                      to_string(shape_), shape_.count());
  }
}

IdxArray read_idx(const std::filesystem::path& path, std::uint64_t max_bytes) {
  return IdxArray(read_maybe_gzip(path, max_bytes), path.native());
}

}  // namespace lamina
