#include "lamina/core/io/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina {

int Descriptor::close() noexcept {
  if (fd_ < 0) return 0;
  // Never retried: on Linux the descriptor is gone even when the call was interrupted.
  const int result = ::close(std::exchange(fd_, -1));
  return result == 0 || errno == EINTR ? 0 : errno;
}

void fail_io(std::string_view verb, const std::filesystem::path& path, int error) {
  fail<IoError>("file", "cannot {} {}: {}", verb, quote(path.native()), std::generic_category().message(error));
}

Descriptor open_descriptor(const std::filesystem::path& path, int flags, unsigned mode) {
  const std::string_view verb = (flags & O_ACCMODE) == O_RDONLY ? "open" : "create";
  if (path.native().find('\0') != std::string::npos) fail_io(verb, path, EINVAL);
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return Descriptor(fd);
    if (errno != EINTR) fail_io(verb, path, errno);
  }
}

void write_all(const Descriptor& file, std::span<const std::byte> data, const std::filesystem::path& path) {
  while (!data.empty()) {
    const ssize_t n = ::write(file.get(), data.data(), data.size());
    if (n > 0) {
      data = data.subspan(static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      fail_io("write", path, n == 0 ? ENOSPC : errno);
    }
  }
}

void sync_descriptor(const Descriptor& file, const std::filesystem::path& path) {
  while (::fsync(file.get()) != 0) {
    if (errno != EINTR) fail_io("sync", path, errno);
  }
}

}  // namespace lamina
