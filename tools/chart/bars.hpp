// Stacked bars, each an SVG stretched to the width of the page, its texts HTML beside it. Pure functions; thread-safe.
// All text given is escaped here.
#pragma once

#include <string>
#include <vector>

namespace lamina::tools {

struct BarPart {
  double value = 0;  ///< negative or not finite counts as 0
  int color = 0;
  std::string name = {};
  std::string value_text = {};
};
struct BarRow {
  std::string label = {};
  std::vector<BarPart> parts = {};
  double underline = 0;  ///< a thin bar below the first part, as long as this value
  int underline_color = 0;
  std::string underline_text = {};
  std::string end_text = {};
};

/// Horizontal stacked bars on one scale, a <figure class="bars">.
std::string stacked_bars(const std::vector<BarRow>& rows);

}  // namespace lamina::tools
