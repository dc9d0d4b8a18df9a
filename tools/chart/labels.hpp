// Numbers as charts write them: labels of ticks, which must tell neighbours apart in few characters, and single values.
// Pure functions; thread-safe.
#pragma once

#include <string>

namespace lamina::tools {

enum class NumberFormat { plain, percent, count };

/// For a tick of an axis whose ticks are `step` apart and at most `largest` in size.
std::string tick_label(double value, double step, double largest, NumberFormat format);

/// For a tick of a log axis, a round value.
std::string log_label(double value, NumberFormat format);

/// A span of time by the size of the steps between ticks.
std::string time_label(double seconds, double step);

/// A measured value: four or five digits.
std::string value_text(double value, NumberFormat format);

}  // namespace lamina::tools
