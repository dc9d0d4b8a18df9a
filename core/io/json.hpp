// JSON from outside, bounded; and JSON lines, the append-only log of a run's metrics.
#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "lamina/core/io/descriptor.hpp"

namespace lamina {

struct JsonLimits {
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 64;  ///< objects and arrays inside one another; "[]" has depth 1
};

/// One JSON value. `name` is for messages. Throws FormatError for what is not JSON, for invalid UTF-8, for a key that
/// an object has twice, and beyond the limits. Pure; thread-safe.
nlohmann::json parse_json(std::string_view text, std::string_view name, JsonLimits limits = {});

/// The JSON value that is the file's contents. Throws as parse_json; IoError when it cannot be read.
nlohmann::json read_json(const std::filesystem::path& path, JsonLimits limits = {});

/// Appends JSON values to a file, one a line, each by one write(2) with nothing kept back: a killed run loses no
/// finished line, and several processes may append to one file. Thread-safe.
class JsonLines {
 public:
  enum class Mode { truncate, append };

  /// Opens or creates the file. A last line that a killed run left unfinished is ended, so that it spoils only itself.
  /// Throws IoError.
  explicit JsonLines(std::filesystem::path path, Mode mode = Mode::truncate);

  /// Throws IoError; the next call may be tried all the same. NaN and infinity become null, invalid UTF-8 is replaced.
  void write(const nlohmann::json& value);

 private:
  std::filesystem::path path_;
  Descriptor file_;
  std::mutex mutex_;
  bool torn_ = false;  // the last write failed half-way
};

}  // namespace lamina
