#include "lamina/tools/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "lamina/core/trace.hpp"

namespace lamina::tools {

namespace {

// Three significant digits of a value in [0, 1000).
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

// The value over the largest power of `base` that leaves at least 1, with that power's unit.
std::string scaled(double value, double base, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  double shown = value;
  while (std::abs(shown) >= base * 0.9995 && unit + 1 < units.size()) {
    shown /= base;
    ++unit;
  }
  if (unit == 0 && shown == std::floor(shown)) return fmt::format("{:.0f}{}", shown, units[0]);
  if (std::abs(shown) >= 1e4) return fmt::format("{:.3g}{}", shown, units[unit]);
  return three_digits(shown) + std::string(units[unit]);
}

}  // namespace

std::string human_bytes(double bytes) {
  if (!std::isfinite(bytes)) return "-";
  static constexpr std::string_view units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return scaled(bytes, 1024, units);
}

std::string human_count(double count) {
  if (!std::isfinite(count)) return "-";
  static constexpr std::string_view units[] = {"", "k", "M", "G", "T", "P", "E"};
  if (std::abs(count) < 1e4 && count == std::floor(count)) return fmt::format("{:.0f}", count);
  return scaled(count, 1000, units);
}

std::string human_flops(double flops) {
  if (!std::isfinite(flops)) return "-";
  static constexpr std::string_view units[] = {" FLOP",  " kFLOP", " MFLOP", " GFLOP",
                                               " TFLOP", " PFLOP", " EFLOP", " ZFLOP"};
  return scaled(flops, 1000, units);
}

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds < 0) return "-" + human_seconds(-seconds);
  if (seconds == 0) return "0 s";
  if (seconds < 0.9995e-6) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 0.9995e-3) return three_digits(seconds * 1e6) + " us";
  if (seconds < 0.9995) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 99.95) return three_digits(seconds) + " s";
  const double rounded = std::round(seconds);
  if (rounded < 3600) return fmt::format("{:.0f}m {:02.0f}s", std::floor(rounded / 60), std::fmod(rounded, 60));
  const double minutes = std::round(seconds / 60);
  if (minutes < 24 * 60) return fmt::format("{:.0f}h {:02.0f}m", std::floor(minutes / 60), std::fmod(minutes, 60));
  const double hours = std::round(seconds / 3600);
  return fmt::format("{:.0f}d {:02.0f}h", std::floor(hours / 24), std::fmod(hours, 24));
}

std::string human_number(double value, int digits) {
  return std::isfinite(value) ? fmt::format("{:.{}g}", value, digits) : "-";
}

std::size_t display_width(std::string_view utf8) {
  std::size_t width = 0;
  while (!utf8.empty()) {
    const std::size_t length = std::max<std::size_t>(lamina::detail::utf8_sequence(utf8), 1);
    // Combining marks U+0300 to U+036F add no cell.
    const bool combining = length == 2 && (utf8[0] == '\xcc' || (utf8[0] == '\xcd' && utf8[1] < '\xb0'));
    if (!combining) ++width;
    utf8.remove_prefix(length);
  }
  return width;
}

std::string Table::to_text() const {
  std::size_t columns = headers_.size();
  for (const auto& row : rows_) columns = std::max(columns, row.size());
  std::vector<std::size_t> widths(columns, 0);
  std::vector<bool> numeric(columns, true);
  const auto widen = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  };
  widen(headers_);
  for (const auto& row : rows_) {
    widen(row);
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string& cell = row[c];
      if (cell.empty() || cell == "-") continue;
      const char first =
          cell[0] == '-' || cell[0] == '+' || cell[0] == '.' ? (cell.size() > 1 ? cell[1] : ' ') : cell[0];
      if (first < '0' || first > '9') numeric[c] = false;
    }
  }

  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    std::string text;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string padding(widths[c] - display_width(row[c]), ' ');
      if (c > 0) text += "  ";
      text += numeric[c] ? padding + row[c] : row[c] + padding;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  if (!headers_.empty()) {
    line(headers_);
    std::size_t total = 0;
    for (const std::size_t w : widths) total += w + 2;
    out += std::string(total - 2, '-') + "\n";
  }
  for (const auto& row : rows_) line(row);
  return out;
}

}  // namespace lamina::tools
