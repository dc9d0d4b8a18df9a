#include "lamina/tools/chart/markup.hpp"

#include <algorithm>

#include "lamina/core/trace.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = lamina::detail::utf8_sequence(text);
    switch (const char c = text.front()) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (length == 0) {
          out += "\xef\xbf\xbd";
        } else if (length > 1 || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) {
          out += text.substr(0, length);
        } else if (c == '\n' || c == '\t') {
          out += ' ';
        }
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text) {
  constexpr double char_width = 7;
  return char_width * static_cast<double>(display_width(text));
}

std::string color_class(int color) {
  if (color == kFrame) return "frame";
  return color < 0 ? "mute" : fmt::format("c{}", color % kChartColors);
}

}  // namespace lamina::tools
