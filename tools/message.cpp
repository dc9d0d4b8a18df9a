#include "lamina/tools/message.hpp"

#include <cstdio>

namespace lamina::tools {

void print_message(std::string_view text) noexcept {
  constexpr std::size_t kLongest = 2000;
  std::fputs("lamina: ", stderr);
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      std::fprintf(stderr, "\\x%02x", byte);
    } else {
      std::fputc(c, stderr);
    }
  }
  std::fputs(text.size() > kLongest ? "...\n" : "\n", stderr);
}

}  // namespace lamina::tools
