#include "lamina/core/error.hpp"

namespace lamina {

std::string error_message(const Where& where, std::string_view detail) {
  std::string text = fmt::format("{}: {}", where.name, detail);
  if (where.location != nullptr && where.location->line() != 0) {
    std::string_view file = where.location->file_name();
    if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
    text += fmt::format(" [{}:{}]", file, where.location->line());
  }
  return text;
}

}  // namespace lamina
