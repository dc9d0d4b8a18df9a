// Timelines as inline SVG: what ran when, a lane a thread. Pure functions; thread-safe. All text given is escaped here.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lamina::tools {

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

}  // namespace lamina::tools
