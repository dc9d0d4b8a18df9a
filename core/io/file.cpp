#include "lamina/core/io/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#define ZLIB_CONST  // next_in is read only
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <limits>
#include <memory>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina {

ReadFile::ReadFile(std::filesystem::path path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a pipe nobody writes would block for ever. It means nothing for regular files.
  file_ = open_descriptor(path_, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_io("open", path_, errno);
  if (S_ISDIR(status.st_mode)) fail_io("read", path_, EISDIR);
  if (!S_ISREG(status.st_mode)) fail<IoError>("file", "cannot read {}: not a regular file", quote(path_.native()));
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void ReadFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr auto kMaxOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (offset > kMaxOffset || out.size() > kMaxOffset - offset) fail_io("read", path_, EOVERFLOW);
  while (!out.empty()) {
    const ssize_t n = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n > 0) {
      out = out.subspan(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    } else if (n == 0) {
      fail<IoError>("file", "cannot read {}: it ends at byte {}, {} more were expected", quote(path_.native()), offset,
                    out.size());
    } else if (errno != EINTR) {
      fail_io("read", path_, errno);
    }
  }
}

namespace {

void check_size(const std::filesystem::path& path, std::uint64_t size, std::uint64_t max_bytes) {
  if (size <= max_bytes) return;
  fail<FormatError>("file", "{} has {} bytes; at most {} are allowed", quote(path.native()), size, max_bytes);
}

constexpr std::size_t kChunk = std::size_t{1} << 18;

struct InflateEnd {
  void operator()(z_stream* stream) const noexcept { inflateEnd(stream); }
};

// Unpacks gzip members until `pull` has no more. `pull` gives the next piece of input, empty at its end; `hint` is the
// size the data claims to have, which is used only as far as the input can back it up.
std::vector<std::byte> inflate_all(const std::function<std::span<const std::byte>()>& pull, std::string_view name,
                                   std::uint64_t input_bytes, std::uint32_t hint, std::uint64_t max_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) fail<OutOfMemory>("gzip", "{}: no memory for zlib", quote(name));
  const std::unique_ptr<z_stream, InflateEnd> guard(&stream);

  constexpr std::uint64_t kMaxRatio = 1032;  // deflate cannot expand further
  max_bytes = std::min(max_bytes, std::uint64_t{std::numeric_limits<std::int64_t>::max() - 1});
  const std::uint64_t limit = max_bytes + 1;  // one byte more tells "just full" from "too large"
  const std::uint64_t backed = std::min<std::uint64_t>(hint, input_bytes * kMaxRatio);
  std::vector<std::byte> out(static_cast<std::size_t>(std::min(limit, std::max<std::uint64_t>(backed + 1, 512))));
  std::uint64_t used = 0;
  bool member_open = true;

  for (;;) {
    if (stream.avail_in == 0) {
      const std::span<const std::byte> piece = pull();
      if (piece.empty()) {
        if (member_open) fail<FormatError>("gzip", "{} is cut short after {} unpacked bytes", quote(name), used);
        break;
      }
      stream.next_in = reinterpret_cast<const Bytef*>(piece.data());
      stream.avail_in = static_cast<uInt>(piece.size());
    }
    if (!member_open) {  // RFC 1952 allows members one after the other, and nothing else
      if (inflateReset(&stream) != Z_OK) fail<FormatError>("gzip", "{}: zlib cannot go on", quote(name));
      if (*stream.next_in != 0x1f) fail<FormatError>("gzip", "{}: data after the end of the gzip stream", quote(name));
      member_open = true;
    }
    if (used == out.size()) {
      const std::uint64_t larger = std::min<std::uint64_t>(limit, 2 * std::uint64_t{out.size()});
      try {
        out.resize(static_cast<std::size_t>(larger));
      } catch (const std::bad_alloc&) {
        fail<OutOfMemory>("gzip", "{} unpacks to more than {} bytes, and there is no memory for {}", quote(name), used,
                          larger);
      }
    }
    const std::uint64_t room = std::min<std::uint64_t>(out.size() - used, std::numeric_limits<uInt>::max());
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + used);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    used += room - stream.avail_out;
    if (used > max_bytes) {
      fail<FormatError>("gzip", "{} unpacks to more than the {} bytes allowed", quote(name), max_bytes);
    }
    if (status == Z_STREAM_END) {
      member_open = false;
    } else if (status == Z_MEM_ERROR) {
      fail<OutOfMemory>("gzip", "{}: no memory for zlib", quote(name));
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail<FormatError>("gzip", "{} is corrupt after {} unpacked bytes: {}", quote(name), used,
                        stream.msg != nullptr ? stream.msg : "unknown reason");
    }
  }
  out.resize(static_cast<std::size_t>(used));
  return out;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const ReadFile file(path);
  check_size(path, file.size(), max_bytes);
  std::vector<std::byte> out(static_cast<std::size_t>(file.size()));
  file.read_at(0, out);
  return out;
}

std::vector<std::byte> read_file_range(const std::filesystem::path& path, std::uint64_t offset, std::uint64_t count) {
  const ReadFile file(path);
  if (offset > file.size() || count > file.size() - offset) {
    fail<IoError>("file", "cannot read {}: {} bytes from {} on are not all in its {}", quote(path.native()), count,
                  offset, file.size());
  }
  std::vector<std::byte> out(static_cast<std::size_t>(count));
  file.read_at(offset, out);
  return out;
}

std::vector<std::byte> read_maybe_gzip(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const ReadFile file(path);
  std::byte magic[2] = {};
  if (file.size() >= 2) file.read_at(0, magic);
  if (magic[0] != std::byte{0x1f} || magic[1] != std::byte{0x8b}) {
    check_size(path, file.size(), max_bytes);
    std::vector<std::byte> out(static_cast<std::size_t>(file.size()));
    file.read_at(0, out);
    return out;
  }
  std::byte claimed[4] = {};
  if (file.size() >= 18) file.read_at(file.size() - 4, claimed);
  std::vector<std::byte> buffer(kChunk);
  std::uint64_t offset = 0;
  const auto pull = [&]() -> std::span<const std::byte> {
    const std::span<std::byte> piece(buffer.data(),
                                     static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file.size() - offset)));
    file.read_at(offset, piece);
    offset += piece.size();
    return piece;
  };
  return inflate_all(pull, path.native(), file.size(), load_little<std::uint32_t>(claimed), max_bytes);
}

std::vector<std::byte> gunzip(std::span<const std::byte> data, std::string_view name, std::uint64_t max_bytes) {
  const std::uint32_t hint = data.size() >= 18 ? load_little<std::uint32_t>(data.data() + data.size() - 4) : 0;
  std::span<const std::byte> rest = data;
  const auto pull = [&] {
    const auto piece = rest.first(std::min(rest.size(), std::size_t{1} << 30));
    rest = rest.subspan(piece.size());
    return piece;
  };
  return inflate_all(pull, name, data.size(), hint, max_bytes);
}

std::uint64_t hash_bytes(std::span<const std::byte> data) noexcept { return XXH3_64bits(data.data(), data.size()); }

std::uint64_t hash_file(const std::filesystem::path& path) {
  const ReadFile file(path);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (!state) fail<OutOfMemory>("file", "no memory to hash {}", quote(path.native()));
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> buffer(kChunk);
  for (std::uint64_t offset = 0; offset < file.size();) {
    const std::span<std::byte> piece(buffer.data(),
                                     static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, file.size() - offset)));
    file.read_at(offset, piece);
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
    offset += piece.size();
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace lamina
