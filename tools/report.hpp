// The report: one self-contained HTML page on one or several runs. It loads nothing: style, charts and the few lines of
// script that show values under the pointer are inline, and a content security policy says so. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/trace.hpp"
#include "lamina/tools/run_record.hpp"

namespace lamina::tools {

/// One op's (or any span name's) share of a run.
struct OpTime {
  std::string name = {};
  std::int64_t calls = 0;
  double seconds = 0;      ///< over all lanes, what it called not included
  std::int64_t flops = 0;  ///< 0: not known
  std::int64_t bytes = 0;  ///< read and written; 0: not known
};

/// Times by name over the spans of a category ("" for all), longest first. A span's time leaves out the spans of the
/// same category inside it.
std::vector<OpTime> op_times(const TraceSnapshot& trace, std::string_view category);

struct RunReport {
  RunRecord record;
  std::vector<OpTime> ops = {};             ///< empty: no table
  std::optional<TraceSnapshot> trace = {};  ///< for the timeline
  std::string title = {};                   ///< empty: made from what tells the runs apart
};

/// The page. Runs are drawn into the same charts; their order gives their colours.
std::string render_report(std::span<const RunReport> runs);

}  // namespace lamina::tools
