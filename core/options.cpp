#include "lamina/core/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lamina/core/error.hpp"

namespace lamina {

std::int64_t parse_integer(std::string_view where, std::string_view text, std::int64_t lo, std::int64_t hi) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || value < lo || value > hi) {
    fail<ValueError>(where, "'{}' is not an integer in [{}, {}]", text, lo, hi);
  }
  return value;
}

double parse_number(std::string_view where, std::string_view text, double lo, double hi) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty() || !(value >= lo && value <= hi)) {
    fail<ValueError>(where, "'{}' is not a number in [{}, {}]", text, lo, hi);
  }
  return value;
}

NamedOptions::NamedOptions(std::string what, std::string_view text) : what_(std::move(what)) {
  const auto colon = text.find(':');
  name_ = std::string(text.substr(0, colon));
  if (colon == std::string_view::npos) return;
  std::string_view rest = text.substr(colon + 1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      fail<ValueError>(what_, "'{}' in '{}' is not key=value", item, text);
    }
    const std::string key(item.substr(0, equals));
    if (!given_.emplace(key, std::string(item.substr(equals + 1))).second) {
      fail<ValueError>(what_, "option '{}' is given twice in '{}'", key, text);
    }
  }
}

std::string NamedOptions::text(const std::string& key, const std::string& fallback) {
  note(key, fallback);
  const auto it = given_.find(key);
  return it == given_.end() ? fallback : it->second;
}

void NamedOptions::note(const std::string& key, std::string fallback) {
  if (std::ranges::find(known_, key, &Known::key) == known_.end()) known_.push_back({key, std::move(fallback)});
}

std::int64_t NamedOptions::integer(const std::string& key, std::int64_t fallback, std::int64_t lo, std::int64_t hi) {
  const std::string value = text(key, std::to_string(fallback));
  return parse_integer(fmt::format("{} {}: option {}", what_, name_, key), value, lo, hi);
}

double NamedOptions::number(const std::string& key, double fallback, double lo, double hi) {
  note(key, fmt::format("{}", fallback));
  const auto it = given_.find(key);
  if (it == given_.end()) return fallback;
  return parse_number(fmt::format("{} {}: option {}", what_, name_, key), it->second, lo, hi);
}

std::vector<std::int64_t> NamedOptions::integers(const std::string& key, std::vector<std::int64_t> fallback) {
  note(key, fmt::format("{}", fmt::join(fallback, "x")));
  const auto it = given_.find(key);
  if (it == given_.end()) return fallback;
  std::vector<std::int64_t> values;
  std::string_view rest = it->second;
  for (;;) {
    const auto x = rest.find('x');
    values.push_back(
        parse_integer(fmt::format("{} {}: option {}", what_, name_, key), rest.substr(0, x), 0, std::int64_t{1} << 40));
    if (x == std::string_view::npos) return values;
    rest = rest.substr(x + 1);
  }
}

void NamedOptions::finish() const {
  for (const auto& [key, value] : given_) {
    if (std::ranges::find(known_, key, &Known::key) != known_.end()) continue;
    std::string allowed;
    for (const Known& known : known_) allowed += (allowed.empty() ? "" : ", ") + known.key;
    fail<ValueError>(what_, "{} has no option '{}'; allowed: {}", name_, key, known_.empty() ? "none" : allowed);
  }
}

std::string NamedOptions::defaults() const {
  std::string text;
  for (const Known& known : known_) text += fmt::format("{}{}={}", text.empty() ? "" : ",", known.key, known.fallback);
  return text;
}

}  // namespace lamina
