#include "lamina/core/io/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <random>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina {

struct AtomicFile::Hash {
  Hash() : state(XXH3_createState(), &XXH3_freeState) {
    if (!state) fail<OutOfMemory>("file", "no memory for a hash");
    XXH3_64bits_reset(state.get());
  }
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state;
};

namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 16;  // small writes are gathered, larger ones go straight through
constexpr std::size_t kLongestName = 255;
constexpr std::size_t kHex = 8;
constexpr std::string_view kSuffix = ".tmp";

// Names may have 255 bytes; a long one is cut, which only lets two targets share a prefix.
std::string temporary_prefix(const std::filesystem::path& path) {
  const std::string name = path.filename().native();
  return fmt::format(".{}.", std::string_view(name).substr(0, 200));
}

bool is_temporary(std::string_view name, std::string_view prefix) {
  return name.size() == prefix.size() + kHex + kSuffix.size() && name.starts_with(prefix) && name.ends_with(kSuffix) &&
         name.substr(prefix.size(), kHex).find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A writer holds a lock on its temporary for as long as it lives: one that can be locked has no writer any more.
void remove_abandoned(const std::filesystem::path& folder, std::string_view prefix) noexcept {
  try {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const std::string name = entry.path().filename().native();
      if (!is_temporary(name, prefix)) continue;
      const Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
      if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    }
  } catch (...) {  // tidying up is a courtesy: what fails here is reported by the write itself if it matters
  }
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, Options options) : path_(std::move(path)), options_(options) {
  if (path_.native().find('\0') != std::string::npos) fail_io("create", path_, EINVAL);
  if (!path_.has_filename() || path_.filename() == "." || path_.filename() == "..") fail_io("create", path_, EISDIR);
  if (path_.filename().native().size() > kLongestName) fail_io("create", path_, ENAMETOOLONG);
  struct stat old {};
  const bool replaces = ::stat(path_.c_str(), &old) == 0;
  if (replaces && S_ISDIR(old.st_mode)) fail_io("create", path_, EISDIR);
  if (replaces && !S_ISREG(old.st_mode)) fail<IoError>("file", "{} is not a regular file", quote(path_.native()));
  std::error_code error;
  for (int links = 0; std::filesystem::is_symlink(path_, error); ++links) {
    const std::filesystem::path target = std::filesystem::read_symlink(path_, error);
    if (error || links == 40) fail_io("create", path_, links == 40 ? ELOOP : error.value());
    path_ = path_.parent_path() / target;
  }
  folder_ = path_.has_parent_path() ? path_.parent_path() : std::filesystem::path(".");
  hash_ = std::make_unique<Hash>();
  buffer_.reserve(kBuffer);
  remove_abandoned(folder_, temporary_prefix(path_));
  create_temporary();
  // Refused where the old file belongs to somebody else; the umask's bits are then right.
  if (replaces && S_ISREG(old.st_mode)) (void)!::fchmod(file_.get(), old.st_mode & 0777);
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::create_temporary() {
  std::random_device random;
  for (int tries = 0;; ++tries) {
    temporary_ = folder_ / fmt::format("{}{:08x}{}", temporary_prefix(path_), random() & 0xffffffffu, kSuffix);
    const int fd = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) {
      if ((errno == EEXIST || errno == EINTR) && tries < 100) continue;
      const int error = errno;
      temporary_.clear();
      fail_io("create", path_, error);
    }
    file_ = Descriptor(fd);
    // Between open and flock another writer may have taken the file for an abandoned one. File systems without locks
    // refuse flock, to both sides: nothing is ever tidied up there.
    struct stat status {};
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &status) == 0 && status.st_nlink == 0 && tries < 100)
      continue;
    return;
  }
}

template <class F>
void AtomicFile::guarded(F&& work) {
  if (!file_) fail<IoError>("file", "cannot write {}: it was committed or has failed before", quote(path_.native()));
  try {
    work();
  } catch (...) {
    discard();
    throw;
  }
}

void AtomicFile::write(std::span<const std::byte> data) {
  guarded([&] {
    if (data.empty()) return;
    XXH3_64bits_update(hash_->state.get(), data.data(), data.size());
    bytes_ += data.size();
    if (buffer_.size() + data.size() > kBuffer) flush();
    if (data.size() >= kBuffer) {
      write_all(file_, data, path_);
    } else {
      buffer_.insert(buffer_.end(), data.begin(), data.end());
    }
  });
}

void AtomicFile::flush() {
  write_all(file_, buffer_, path_);
  buffer_.clear();
}

WrittenFile AtomicFile::commit() {
  guarded([&] {
    flush();
    if (options_.sync) {
      sync_descriptor(file_, path_);
    } else {
      // Network file systems report delayed writes at a close; the lock has to outlive the temporary name.
      Descriptor copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
      if (const int error = copy.close(); error != 0) fail_io("write", path_, error);
    }
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io("replace", path_, errno);
    temporary_.clear();
    file_.close();
    if (!options_.sync) return;
    const Descriptor folder = open_descriptor(folder_, O_RDONLY | O_DIRECTORY);
    while (::fsync(folder.get()) != 0) {
      if (errno == EINVAL || errno == ENOTSUP) break;  // a file system whose folders cannot be synced
      if (errno != EINTR) fail_io("sync the folder of the renamed", path_, errno);
    }
  });
  return {bytes_, XXH3_64bits_digest(hash_->state.get())};
}

void AtomicFile::discard() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  file_.close();
}

WrittenFile write_file(const std::filesystem::path& path, std::span<const std::byte> data) {
  AtomicFile file(path);
  file.write(data);
  return file.commit();
}

WrittenFile write_file(const std::filesystem::path& path, std::string_view text) {
  return write_file(path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace lamina
