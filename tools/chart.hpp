// Charts as inline SVG for an HTML page: line charts, stacked bars, timelines. Colours are classes (c0 to c7, mute)
// that the page's style sheet defines, so that a chart follows the light or dark scheme. Pure functions; thread-safe.
// All text given is escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina::tools {

inline constexpr int kChartColors = 8;
inline constexpr int kMuted = -1;  ///< the grey, in place of a colour's number

/// Text for HTML and SVG: markup escaped, invalid UTF-8 replaced, control characters dropped.
std::string escape_html(std::string_view text);

enum class NumberFormat { plain, percent, count };

/// An axis with round ticks. Maps lo..hi to 0..1.
struct Axis {
  double lo = 0;
  double hi = 1;
  bool log = false;
  std::vector<double> ticks = {};
  std::vector<std::string> labels = {};  ///< one a tick, all different

  double position(double value) const noexcept;
  /// Covers [lo, hi] with about `target` ticks. `outward` moves the ends out to ticks. The range may be empty, tiny or
  /// huge; it may not hold NaN. A log axis needs lo > 0.
  static Axis make(double lo, double hi, int target, NumberFormat format, bool log = false, bool outward = true);
};

/// Values that are not finite are gaps; where one value is missing the line goes on, so that a series measured at every
/// hundredth point is still a line.
struct Series {
  std::string name = {};
  int color = 0;
  bool dashed = false;
  bool smooth = false;         ///< draws the noisy values light and a moving mean bold
  std::vector<double> x = {};  ///< ascending
  std::vector<double> y = {};
};

enum class YScale { linear, log, automatic };  ///< automatic: log when positive values span more than two decades

struct LineChart {
  std::string title = {};
  std::string x_label = {};
  std::string note = {};  ///< small, beside the title
  std::vector<Series> series = {};
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

struct TimelineBar {
  int lane = 0;
  int depth = 0;     ///< nesting: 0 is the outermost
  double start = 0;  ///< seconds
  double end = 0;
  int color = 0;
  std::string label = {};
  std::string tooltip = {};
};
struct Timeline {
  struct Lane {
    std::string group = {};  ///< lanes of one group in a row are drawn together
    std::string label = {};
  };
  std::vector<Lane> lanes = {};
  std::vector<TimelineBar> bars = {};
  std::vector<std::pair<double, std::string>> marks = {};  ///< vertical lines with a label on top, such as steps
  double start = 0;                                        ///< what is shown, seconds
  double end = 1;
  double width = 1080;
  int max_depth = 3;  ///< deeper bars are left out
};
/// A <figure class="timeline">; times are shown from its start. Bars narrower than a pixel are merged.
std::string timeline(const Timeline& timeline);

struct LegendItem {
  std::string name = {};
  int color = 0;
  bool thin = false;  ///< stands for a thin bar
};
/// Colour chips with names, a <div class="legend">.
std::string legend(const std::vector<LegendItem>& items);

/// Moving mean over about `window` values (a triangle), not across gaps. `window` <= 1 gives the values back.
std::vector<double> smoothed(const std::vector<double>& values, int window);

}  // namespace lamina::tools
