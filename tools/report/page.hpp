// The report: one self-contained HTML page on one or several runs. It loads nothing: style, charts and the few lines of
// script that show values under the pointer are inline, and a content security policy says so. Pure functions;
// thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamina/core/trace.hpp"
#include "lamina/tools/report/op_times.hpp"
#include "lamina/tools/run_record.hpp"

namespace lamina::tools {

struct RunReport {
  RunRecord record;
  std::vector<OpTime> ops = {};             ///< empty: no table
  std::optional<TraceSnapshot> trace = {};  ///< for the timeline
  std::string title = {};                   ///< empty: made from what tells the runs apart
};

/// The page. Runs are drawn into the same charts; their order gives their colours.
std::string render_report(std::span<const RunReport> runs);

}  // namespace lamina::tools
