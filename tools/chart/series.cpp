#include "lamina/tools/chart/series.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

std::vector<double> smoothed(const std::vector<double>& values, int window) {
  if (window <= 1) return values;
  // Two box means in a row make the triangle. At the start, where curves are steep, the box shrinks on both sides; at
  // the end it only loses its right half, so that the last value is a mean and not noise.
  const auto box = [&](const std::vector<double>& in) {
    const auto n = static_cast<std::ptrdiff_t>(in.size());
    std::vector<double> sums(in.size() + 1, 0.0);
    std::vector<double> out(in.size());
    for (std::ptrdiff_t begin = 0; begin < n;) {
      if (!drawable(in[begin])) {
        out[begin] = in[begin];
        ++begin;
        continue;
      }
      std::ptrdiff_t end = begin;
      sums[begin] = 0;
      for (; end < n && drawable(in[end]); ++end) sums[end + 1] = sums[end] + in[end];
      for (std::ptrdiff_t i = begin; i < end; ++i) {
        const std::ptrdiff_t full = (window + 3) / 4;
        const std::ptrdiff_t reach = std::min(full, std::max(i - begin, full / 16));
        const std::ptrdiff_t first = std::max(i - reach, begin);
        const std::ptrdiff_t last = std::min(i + reach, end - 1);
        out[i] = (sums[last + 1] - sums[first]) / static_cast<double>(last + 1 - first);
      }
      begin = end;
    }
    return out;
  };
  return box(box(values));
}

std::vector<Points> runs_of(const std::vector<double>& x, const std::vector<double>& y, bool positive) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (drawable(x[i]) && drawable(y[i]) && (!positive || y[i] > 0)) at.push_back(i);
  }
  std::vector<Points> runs;
  if (at.empty()) return runs;
  std::vector<std::size_t> distances;
  for (std::size_t i = 1; i < at.size(); ++i) distances.push_back(at[i] - at[i - 1]);
  std::size_t usual = 1;
  if (!distances.empty()) {
    const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
    std::ranges::nth_element(distances, middle);
    usual = *middle;
  }
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (i == 0 || static_cast<double>(at[i] - at[i - 1]) > 2.5 * static_cast<double>(usual)) runs.emplace_back();
    runs.back().emplace_back(x[at[i]], y[at[i]]);
  }
  return runs;
}

Points thinned(const Points& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  const std::size_t buckets = std::max<std::size_t>(limit / 4, 1);
  const double lo = points.front().first;
  const double span = std::max(points.back().first - lo, std::numeric_limits<double>::min());
  const auto bucket = [&](const auto& p) {
    return std::min(buckets - 1, static_cast<std::size_t>((p.first - lo) / span * static_cast<double>(buckets)));
  };
  Points out;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t end = begin + 1;
    while (end < points.size() && bucket(points[end]) == bucket(points[begin])) ++end;
    std::array<std::size_t, 4> keep = {begin, begin, begin, end - 1};
    for (std::size_t i = begin; i < end; ++i) {
      if (points[i].second < points[keep[1]].second) keep[1] = i;
      if (points[i].second > points[keep[2]].second) keep[2] = i;
    }
    std::ranges::sort(keep);
    for (std::size_t i = 0; i < keep.size(); ++i) {
      if (i == 0 || keep[i] != keep[i - 1]) out.push_back(points[keep[i]]);
    }
    begin = end;
  }
  return out;
}

Points sampled(const Points& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  Points out;
  for (std::size_t i = 0; i < limit; ++i) out.push_back(points[i * (points.size() - 1) / (limit - 1)]);
  return out;
}

Drawn prepare(const Series& series, bool positive) {
  Drawn out{.series = &series, .raw = runs_of(series.x, series.y, positive), .line = {}};
  for (const Points& run : out.raw) out.count += run.size();
  // Bold over about a twentieth of the run: it must show the trend, not the noise.
  const int window = static_cast<int>(std::min<std::size_t>(out.count / 20, 2000));
  if (!series.smooth || out.count < 40) {
    out.line = std::move(out.raw);
    out.raw.clear();
    return out;
  }
  for (const Points& run : out.raw) {
    std::vector<double> values;
    for (const auto& p : run) values.push_back(positive ? std::log(p.second) : p.second);  // the mean as it is drawn
    values = smoothed(values, window);
    Points& line = out.line.emplace_back(run);
    for (std::size_t i = 0; i < line.size(); ++i) line[i].second = positive ? std::exp(values[i]) : values[i];
  }
  return out;
}

}  // namespace lamina::tools
