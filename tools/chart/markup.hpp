// Pieces of HTML and SVG, as all charts and the page write them. Colours are classes (c0 to c7, mute, frame) that the
// page's style sheet defines, so that a chart follows the light or dark scheme. Pure functions; thread-safe.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace lamina::tools {

inline constexpr int kChartColors = 8;
inline constexpr int kMuted = -1;  ///< the light grey, in place of a colour's number: nothing happens
inline constexpr int kFrame = -2;  ///< the dark grey: what only encloses other work

/// Appends what fmt::format would return.
template <class... A>
void add(std::string& out, fmt::format_string<A...> format, A&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<A>(args)...);
}

/// Text for HTML and SVG: markup escaped, invalid UTF-8 replaced, control characters dropped.
std::string escape_html(std::string_view text);

/// A coordinate: two decimals, none that are zero.
std::string px(double value);

/// Of a 12 px tick label, on the wide side: nothing here can measure text.
double text_width(std::string_view text);

std::string color_class(int color);

inline constexpr double kHuge = 1e150;  ///< beyond this, differences and products overflow: treated as a gap

inline bool drawable(double v) { return std::isfinite(v) && std::abs(v) < kHuge; }

}  // namespace lamina::tools
