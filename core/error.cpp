#include "lamina/core/error.hpp"

namespace lamina {

thread_local constinit const SourceLocation* CallSite::current = nullptr;

std::string error_message(std::string_view where, std::string_view detail) {
  std::string text = fmt::format("{}: {}", where, detail);
  if (CallSite::current != nullptr) {
    std::string_view file = CallSite::current->file_name();
    if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
    text += fmt::format(" [{}:{}]", file, CallSite::current->line());
  }
  return text;
}

}  // namespace lamina
