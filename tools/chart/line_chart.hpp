// Line charts as inline SVG, readable without a script. Pure functions; thread-safe. All text given is escaped here.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lamina/tools/chart/labels.hpp"
#include "lamina/tools/chart/series.hpp"

namespace lamina::tools {

enum class YScale { linear, log, automatic };  ///< automatic: log when positive values span more than two decades

struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::string note = {};  ///< small, beside the title
  std::vector<Series> series = {};
  std::optional<std::pair<double, double>> x_range = {};  ///< what charts beside each other share; empty: the data's
  YScale scale = YScale::automatic;
  NumberFormat y_format = NumberFormat::plain;
  double width = 540;  ///< units of the drawing, about CSS pixels
  double height = 300;
  bool legend = false;  ///< names the series
};

/// True when there is a finite value to draw.
bool has_values(const LineChart& chart);
/// A <figure class="chart">. Any number of points: what does not fit the width is thinned, extremes kept.
std::string line_chart(const LineChart& chart);

}  // namespace lamina::tools
