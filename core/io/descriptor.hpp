// Descriptor: an owned POSIX file descriptor, and the few system calls the file code is made of, each EINTR-safe and
// with the one wording of its errors: `file: cannot write '/a/b': No space left on device`.
// A Descriptor belongs to one thread at a time; the functions are thread-safe.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace lamina {

class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  /// Closes it. Returns the errno of close(2), 0 if none: the last chance to learn of a failed delayed write.
  int close() noexcept;

 private:
  int fd_ = -1;
};

/// Throws IoError "cannot <verb> '<path>': <text of the errno>".
[[noreturn]] void fail_io(std::string_view verb, const std::filesystem::path& path, int error);

/// open(2) with O_CLOEXEC added. Throws IoError, also for a path that holds a NUL byte.
Descriptor open_descriptor(const std::filesystem::path& path, int flags, unsigned mode = 0666);

/// Writes all of `data`, however many calls that takes. Throws IoError about `path`.
void write_all(const Descriptor& file, std::span<const std::byte> data, const std::filesystem::path& path);

/// fsync(2). Throws IoError about `path`.
void sync_descriptor(const Descriptor& file, const std::filesystem::path& path);

}  // namespace lamina
