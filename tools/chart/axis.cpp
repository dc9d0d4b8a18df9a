#include "lamina/tools/chart/axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lamina::tools {

namespace {

// The smallest of 1, 2, 5 x 10^k that is at least `raw`.
double nice_step(double raw) {
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= raw * (1 - 1e-9)) return m * power;
  }
  return 10 * power;
}

}  // namespace

double Axis::position(double value) const noexcept {
  if (log) return (std::log10(value) - std::log10(lo)) / (std::log10(hi) - std::log10(lo));
  return (value - lo) / (hi - lo);
}

Axis Axis::make(double lo, double hi, int target, NumberFormat format, bool log, bool outward) {
  Axis axis;
  axis.log = log;
  target = std::max(target, 2);
  if (log) {
    if (hi < lo * 1.05) {
      lo /= 1.5;
      hi *= 1.5;
    }
    const double decades = std::log10(hi) - std::log10(lo);
    std::vector<double> multiples = {1};
    if (decades < 1.2) {
      multiples = {1, 2, 3, 5};
    } else if (decades < 3.2) {
      multiples = {1, 2, 5};
    }
    const int stride = std::max(1, static_cast<int>(std::ceil(decades / std::max(target, 3))));
    std::vector<double> candidates;
    const int first = std::max(static_cast<int>(std::floor(std::log10(lo))) - stride, -307);
    const int last = std::min(static_cast<int>(std::ceil(std::log10(hi))) + stride, 307);
    axis.lo = lo;
    axis.hi = hi;
    for (int e = first; e <= last; ++e) {
      if (stride > 1 && ((e % stride) + stride) % stride != 0) continue;
      for (const double m : multiples) candidates.push_back(std::stod(fmt::format("{}e{}", m, e)));
    }
    if (outward) {
      for (const double c : candidates) {
        if (c <= lo * 1.0001) axis.lo = c;
      }
      for (auto c = candidates.rbegin(); c != candidates.rend(); ++c) {
        if (*c >= hi / 1.0001) axis.hi = *c;
      }
    }
    for (const double c : candidates) {
      if (c < axis.lo / 1.0001 || c > axis.hi * 1.0001) continue;
      axis.ticks.push_back(c);
      axis.labels.push_back(log_label(c, format));
    }
    return axis;
  }

  // Below this width neighbouring labels could not be told apart.
  const double largest = std::max(std::abs(lo), std::abs(hi));
  const double narrowest = largest == 0 ? 1e-3 : std::max(largest * 1e-6, 1e-290);
  if (!(hi - lo > narrowest)) {
    const double pad = std::max(lo == hi ? largest * 0.05 : 0.0, narrowest);
    lo -= pad;
    hi += pad;
  }
  const double step = nice_step((hi - lo) / target);
  axis.lo = outward ? std::floor(lo / step + 1e-6) * step : lo;
  axis.hi = outward ? std::ceil(hi / step - 1e-6) * step : hi;
  const auto first = static_cast<std::int64_t>(std::ceil(axis.lo / step - 1e-6));
  const auto last = static_cast<std::int64_t>(std::floor(axis.hi / step + 1e-6));
  for (std::int64_t i = first; i <= last; ++i) {
    axis.ticks.push_back(static_cast<double>(i) * step);
  }
  const double shown =
      axis.ticks.empty() ? largest : std::max(std::abs(axis.ticks.front()), std::abs(axis.ticks.back()));
  for (const double tick : axis.ticks) axis.labels.push_back(tick_label(tick, step, shown, format));
  return axis;
}

}  // namespace lamina::tools
