#include "lamina/tools/report/text.hpp"

#include <fmt/format.h>

#include <cmath>

#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

std::string seconds_text(double value) {
  std::string text = human_seconds(value);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}
std::string percent_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.{}f}%", value * 100, std::abs(value) < 0.9995 ? 1 : 0) : "-";
}
std::string signed_percent(double value) {
  return fmt::format("{}{:.1f}%", value < 0 ? "−" : "+", std::abs(value) * 100);
}
std::string loss_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e4)) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, size < 10 ? 3 : size < 100 ? 2 : 1);
}
std::string speed_text(double value) {
  return std::isfinite(value) ? human_count(value < 100 ? value : std::round(value)) + " /s" : "-";
}

std::string breakable(std::string_view name) {
  std::string out;
  for (const char c : escape_html(name)) {
    out += c;
    if (c == '.') out += "<wbr>";
  }
  return out;
}

std::string with_small_unit(const std::string& text) {
  const auto space = text.rfind(' ');
  if (space == std::string::npos || text.find('m') < space || text.find('h') < space || text.find('d') < space) {
    return escape_html(text);
  }
  return escape_html(text.substr(0, space)) + "<small>" + escape_html(text.substr(space + 1)) + "</small>";
}

}  // namespace lamina::tools
