// An axis: its ends, its ticks and where values lie between them. A value; pure functions; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "lamina/tools/chart/labels.hpp"

namespace lamina::tools {

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

}  // namespace lamina::tools
