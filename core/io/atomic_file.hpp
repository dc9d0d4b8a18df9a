// AtomicFile: writing a file so that at every moment, also after a crash or a full disk, the name holds either the
// whole old contents or the whole new ones. Data goes to a temporary file in the same folder, `.NAME.<8 hex>.tmp`;
// commit() syncs it, renames it over NAME and syncs the folder. One object belongs to one thread at a time; several
// processes may write the same name, the last commit stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "lamina/core/io/descriptor.hpp"

namespace lamina {

/// Size and XXH3 hash (64 bits, seed 0) of what was written: what a manifest needs to tell a whole file from a torn
/// one.
struct WrittenFile {
  std::uint64_t bytes = 0;
  std::uint64_t hash = 0;
  friend bool operator==(const WrittenFile&, const WrittenFile&) = default;
};

class AtomicFile {
 public:
  struct Options {
    bool sync = true;  ///< false: atomic for other processes, but not durable across a power failure
  };

  /// Creates the temporary file, and removes those that killed writers of the same name left behind (a living
  /// writer's is locked). A file that will be replaced passes on its permission bits; what a symbolic
  /// link leads to is replaced, not the link. Throws IoError, also for what is no regular file (a device, a pipe).
  explicit AtomicFile(std::filesystem::path path) : AtomicFile(std::move(path), Options()) {}
  AtomicFile(std::filesystem::path path, Options options);
  /// Without a commit the temporary is removed and the old file is as it was.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. Throws IoError (a full disk, a limit); the temporary is gone then and further calls throw.
  void write(std::span<const std::byte> data);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

  /// Puts the file in place and says what it holds. Throws IoError; the old file is then untouched, unless only the
  /// last step failed (syncing the folder), which the message says. Nothing may be written afterwards.
  WrittenFile commit();

 private:
  struct Hash;
  void create_temporary();
  void flush();
  void discard() noexcept;
  template <class F>
  void guarded(F&& work);

  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  Options options_;
  Descriptor file_;
  std::unique_ptr<Hash> hash_;
  std::vector<std::byte> buffer_;
  std::uint64_t bytes_ = 0;
};

/// The whole of `data` by way of an AtomicFile. Throws IoError.
WrittenFile write_file(const std::filesystem::path& path, std::span<const std::byte> data);
WrittenFile write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace lamina
