#include "lamina/core/io/json.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"

namespace lamina {

using nlohmann::json;

json parse_json(std::string_view text, std::string_view name, JsonLimits limits) {
  if (text.size() > limits.bytes) {
    fail<FormatError>("json", "{} has {} bytes; at most {} are allowed", quote(name), text.size(), limits.bytes);
  }
  // The parser takes a NUL byte for the end of the text and would not look at what follows it.
  if (const auto at = text.find('\0'); at != std::string_view::npos) {
    fail<FormatError>("json", "{} is not JSON: a NUL byte at {}", quote(name), at);
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start || event == json::parse_event_t::array_start) {
      if (depth >= limits.depth) {
        fail<FormatError>("json", "{} is nested more than {} deep", quote(name), limits.depth);
      }
      if (event == json::parse_event_t::object_start) keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        fail<FormatError>("json", "{} has the key {} twice in one object", quote(name), quote(key));
      }
    }
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const json::parse_error& error) {
    fail<FormatError>("json", "{} is not JSON: syntax error at byte {}", quote(name), error.byte);
  } catch (const json::exception& error) {  // a number too large for double
    fail<FormatError>("json", "{}: {}", quote(name), quote(error.what()));
  }
}

json read_json(const std::filesystem::path& path, JsonLimits limits) {
  const std::vector<std::byte> bytes = read_file(path, limits.bytes);
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.native(), limits);
}

JsonLines::JsonLines(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  file_ = open_descriptor(path_, O_RDWR | O_CREAT | O_APPEND | O_NOCTTY | (mode == Mode::truncate ? O_TRUNC : 0));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_io("open", path_, errno);
  char last = '\n';
  if (S_ISREG(status.st_mode) && status.st_size > 0) (void)!::pread(file_.get(), &last, 1, status.st_size - 1);
  torn_ = last != '\n';
}

void JsonLines::write(const json& value) {
  const std::string line = value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  const std::lock_guard lock(mutex_);
  const std::string text = torn_ ? '\n' + line : line;
  torn_ = true;
  write_all(file_, std::as_bytes(std::span(text.data(), text.size())), path_);
  torn_ = false;
}

}  // namespace lamina
