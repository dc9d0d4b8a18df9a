// The timeline. A whole trace would be too dense to read: a few steps are shown that are like most.
#include "lamina/tools/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lamina/core/trace.hpp"
#include "lamina/tools/chart/legend.hpp"
#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/chart/timeline.hpp"
#include "lamina/tools/report/text.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

constexpr std::size_t kMaxLanes = 48;
constexpr std::size_t kStepsShown = 3;

struct Window {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // start, number
};

// A few steps in a row that take about as long as most do; without steps the whole trace, or a stretch of its middle.
Window representative(const TraceSnapshot& trace) {
  struct Step {
    std::int64_t number;
    std::int64_t start;
    std::int64_t end;
  };
  std::map<std::int64_t, Step> by_number;
  for (const auto& span : trace.spans) {
    if (span.args.step < 0) continue;
    const auto [place, added] = by_number.try_emplace(span.args.step, Step{span.args.step, span.start_ns, span.end_ns});
    place->second.start = std::min(place->second.start, span.start_ns);
    place->second.end = std::max(place->second.end, span.end_ns);
  }
  if (!by_number.empty()) {
    std::vector<Step> steps;
    for (const auto& [n, step] : by_number) steps.push_back(step);
    if (steps.size() > kStepsShown + 1) steps.erase(steps.begin());  // the first one warms up
    const std::size_t k = std::min(kStepsShown, steps.size());
    const auto length = [&](std::size_t i) { return static_cast<double>(steps[i + k - 1].end - steps[i].start); };
    std::vector<double> lengths;
    for (std::size_t i = 0; i + k <= steps.size(); ++i) lengths.push_back(length(i));
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
    std::ranges::nth_element(lengths, middle);
    // As long as the median; among the nearly equal, from the middle of the run.
    const auto strangeness = [&](std::size_t i) {
      const double off = *middle > 0 ? std::abs(length(i) - *middle) / *middle : 0;
      return off + 0.05 * std::abs(static_cast<double>(i) / static_cast<double>(lengths.size()) - 0.5);
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < lengths.size(); ++i) {
      if (strangeness(i) < strangeness(best)) best = i;
    }
    Window window{steps[best].start, steps[best].end, {}};
    for (std::size_t i = best; i < best + k; ++i) {
      window.end = std::max(window.end, steps[i].end);
      window.steps.emplace_back(steps[i].start, steps[i].number);
    }
    return window;
  }
  constexpr std::size_t some = 600;
  std::size_t first = 0;
  std::size_t last = trace.spans.size();
  if (last > 3 * some) {
    first = last / 2 - some / 2;
    last = first + some;
  }
  Window window{trace.spans[first].start_ns, trace.spans[first].end_ns, {}};
  for (std::size_t i = first; i < last; ++i) {
    const auto& span = trace.spans[i];
    // In a long trace an enclosing span must not stretch the window.
    window.end = std::max(window.end, last == trace.spans.size() ? span.end_ns : span.start_ns);
  }
  return window;
}

// Known kinds of work have the colours they have in the bars; others take what this trace leaves, in order.
class CategoryColors {
 public:
  explicit CategoryColors(const TraceSnapshot& trace) {
    for (const auto& span : trace.spans) {
      if (const auto color = known(trace.names[span.category])) taken_.insert(*color);
    }
  }
  int operator()(std::string_view category) {
    if (const auto color = known(category)) return *color;
    const auto [mine, added] = given_.try_emplace(std::string(category), 0);
    if (added) {
      for (const int color : {6, 5, 4, 2, 3, 1, 7, 0}) {
        mine->second = color;
        if (taken_.insert(color).second) break;
      }
    }
    return mine->second;
  }

 private:
  static std::optional<int> known(std::string_view category) {
    static const std::map<std::string_view, int> colors = {
        {"compute", 0},       {"forward", 0},    {"op", 7},        {"backward", 4},  {"comm", 1},
        {"communication", 1}, {"all-reduce", 1}, {"send", 1},      {"receive", 1},   {"input", 3},
        {"load", 3},          {"data", 3},       {"update", 2},    {"optimizer", 2}, {"evaluate", 6},
        {"checkpoint", 5},    {"step", kFrame},  {"idle", kMuted}, {"wait", kMuted}};
    const auto place = colors.find(category);
    return place == colors.end() ? std::nullopt : std::optional(place->second);
  }

  std::set<int> taken_;
  std::map<std::string, int, std::less<>> given_;
};

std::string tooltip_of(const TraceSnapshot& trace, const TraceSnapshot::Span& span) {
  const double s = static_cast<double>(span.end_ns - span.start_ns) * 1e-9;
  Names parts = {trace.names[span.name], trace.names[span.category], seconds_text(s)};
  if (span.args.step >= 0) parts.push_back(fmt::format("step {}", span.args.step));
  if (span.args.flops > 0) {
    parts.push_back(human_flops(static_cast<double>(span.args.flops)));
    if (s > 0) parts.push_back(human_flops(static_cast<double>(span.args.flops) / s) + "/s");
  }
  if (span.args.bytes > 0) parts.push_back(human_bytes(static_cast<double>(span.args.bytes)));
  return joined(parts);
}

std::string timeline_of(const TraceSnapshot& trace) {
  const Window window = representative(trace);
  Timeline t;
  const std::int64_t length = std::max<std::int64_t>(window.end - window.start, 1);
  const auto at = [&](std::int64_t ns) { return static_cast<double>(ns - window.start) * 1e-9; };
  t.start = -0.002 * static_cast<double>(length) * 1e-9;
  t.end = 1.002 * static_cast<double>(length) * 1e-9;
  t.max_depth = 4;

  std::vector<bool> used(trace.lanes.size(), false);
  for (const auto& span : trace.spans) {
    if (span.end_ns >= window.start && span.start_ns <= window.end) used[static_cast<std::size_t>(span.lane)] = true;
  }
  std::vector<std::size_t> lanes;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) lanes.push_back(i);
  }
  std::ranges::stable_sort(lanes, {}, [&](std::size_t i) { return trace.lanes[i].rank; });
  const std::size_t hidden = lanes.size() > kMaxLanes ? lanes.size() - kMaxLanes : 0;
  lanes.resize(lanes.size() - hidden);
  std::vector<int> row_of(trace.lanes.size(), -1);
  for (const std::size_t i : lanes) {
    row_of[i] = static_cast<int>(t.lanes.size());
    t.lanes.push_back({fmt::format("rank {}", trace.lanes[i].rank), trace.lanes[i].name});
  }

  CategoryColors color(trace);
  std::vector<LegendItem> categories;                               // as they first appear
  std::vector<std::vector<std::int64_t>> open(trace.lanes.size());  // ends of the spans around, by lane
  for (const auto& span : trace.spans) {
    auto& around = open[static_cast<std::size_t>(span.lane)];
    while (!around.empty() && around.back() <= span.start_ns) around.pop_back();
    const int depth = static_cast<int>(around.size());
    around.push_back(span.end_ns);
    const int row = row_of[static_cast<std::size_t>(span.lane)];
    if (row < 0 || span.end_ns < window.start || span.start_ns > window.end) continue;
    const std::string& category = trace.names[span.category];
    const int c = color(category);
    const std::string shown = category.empty() ? "other" : category;
    if (depth < t.max_depth && std::ranges::find(categories, shown, &LegendItem::name) == categories.end()) {
      categories.push_back({shown, c});
    }
    t.bars.push_back(
        {row, depth, at(span.start_ns), at(span.end_ns), c, trace.names[span.name], tooltip_of(trace, span)});
  }
  for (const auto& [start, step] : window.steps) t.marks.emplace_back(at(start), fmt::format("step {}", step));

  std::string out = legend(categories) + timeline(t);
  if (hidden > 0) add(out, "<p class=\"none\">and {} more lanes</p>", hidden);
  if (trace.dropped > 0) {
    add(out, "<p class=\"none\">The trace was full: {} later events were dropped.</p>",
        human_count(static_cast<double>(trace.dropped)));
  }
  return out;
}

}  // namespace

std::string timeline_section(Runs runs, const Names& names) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].trace || runs[i].trace->spans.empty()) continue;
    add(out, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "A few steps, as measured", Colors::work),
        timeline_of(*runs[i].trace));
  }
  return out.empty() ? out : "<h2>Timeline</h2><div class=\"stack\">" + out + "</div>";
}

}  // namespace lamina::tools
