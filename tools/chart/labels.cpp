#include "lamina/tools/chart/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

std::string superscript(int value) {
  static constexpr std::string_view digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = value < 0 ? "⁻" : "";
  for (const char c : fmt::format("{}", std::abs(value))) out += digits[c - '0'];
  return out;
}

// mantissa x 10^exponent, with the digits that tell multiples of `step` apart.
std::string scientific(double value, double step) {
  if (value == 0) return "0";
  int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double power = std::pow(10, exponent);
  const int digits = std::clamp(exponent - static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  const std::string mantissa = fmt::format("{:.{}f}", value / power, digits);
  if (mantissa == "1") return "10" + superscript(exponent);
  if (mantissa == "-1") return "−10" + superscript(exponent);
  return mantissa + "·10" + superscript(exponent);
}

int decimals_of(double step) { return std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12); }

}  // namespace

std::string tick_label(double value, double step, double largest, NumberFormat format) {
  if (std::abs(value) < step * 1e-6) value = 0;
  if (format == NumberFormat::percent && largest < 1e3 && step > 0.9e-7) {
    return fmt::format("{:.{}f}%", value * 100, decimals_of(step * 100));
  }
  if (format == NumberFormat::percent) return scientific(value * 100, step * 100) + "%";
  if (largest >= 1e16 || step < 0.9e-5) return scientific(value, step);
  static constexpr std::string_view units[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double divisor = 1;
  while (largest / divisor >= 1e4 - 1e-6 && unit + 1 < std::size(units)) {
    divisor *= 1000;
    ++unit;
  }
  if (value == 0) return "0";
  return fmt::format("{:.{}f}{}", value / divisor, decimals_of(step / divisor), units[unit]);
}

std::string log_label(double value, NumberFormat format) {
  if (format == NumberFormat::percent) return human_number(value * 100, 3) + "%";
  if (value >= 0.9e-3 && value < 1.1e4) return human_number(value, 6);
  return scientific(value, std::pow(10, std::floor(std::log10(value) + 1e-9)));
}

std::string time_label(double seconds, double step) {
  struct Unit {
    double size;
    std::string_view name;
  };
  static constexpr Unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  const Unit* unit = units;
  while (unit + 1 != std::end(units) && step < unit->size * 0.0999) ++unit;
  if (std::abs(seconds) < step * 1e-6) return fmt::format("0 {}", unit->name);
  return fmt::format("{:.{}f} {}", seconds / unit->size, decimals_of(step / unit->size), unit->name);
}

std::string value_text(double value, NumberFormat format) {
  if (format == NumberFormat::count) return human_count(value);
  const double shown = format == NumberFormat::percent ? value * 100 : value;
  const std::string_view unit = format == NumberFormat::percent ? "%" : "";
  const double size = std::abs(shown);
  if (size == 0) return fmt::format("0{}", unit);
  if (size < 0.9995e-3 || size >= 99999.5) return scientific(shown, size * 0.02) + std::string(unit);
  return fmt::format("{:#.{}g}{}", shown, size < 1e4 ? 4 : 5, unit);
}

}  // namespace lamina::tools
