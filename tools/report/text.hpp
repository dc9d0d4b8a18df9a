// Numbers as the page writes them, "-" for what is not known. Pure functions; thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lamina/tools/run_record.hpp"

namespace lamina::tools {

template <class T>
double number(const std::optional<T>& value) {
  return value ? static_cast<double>(*value) : kAbsent;
}

std::string seconds_text(double value);
std::string percent_text(double value);
std::string signed_percent(double value);
std::string loss_text(double value);
std::string speed_text(double value);

/// HTML: a dotted name that may break after its dots.
std::string breakable(std::string_view name);

/// HTML: the number large, what follows its last space small: "1.50 <small>GiB</small>".
std::string with_small_unit(const std::string& text);

}  // namespace lamina::tools
