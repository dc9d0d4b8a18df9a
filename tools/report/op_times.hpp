// Where a trace's time went, by name. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/trace.hpp"

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

}  // namespace lamina::tools
