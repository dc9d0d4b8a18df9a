#include "lamina/tools/chart/timeline.hpp"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "lamina/core/trace.hpp"
#include "lamina/tools/chart/axis.hpp"
#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

std::string shortened(const std::string& text, double width) {
  const auto cells = static_cast<std::size_t>(std::max(width, 0.0) / 6.2);
  if (display_width(text) <= cells) return text;
  if (cells < 4) return {};
  std::string out;
  for (std::string_view rest = text; display_width(out) + 1 < cells;) {
    const std::size_t length = std::max<std::size_t>(lamina::detail::utf8_sequence(rest), 1);
    out += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return out + "…";
}

}  // namespace

std::string timeline(const Timeline& t) {
  const double span = t.end - t.start;
  if (!(span > 0) || t.lanes.empty()) return "<p class=\"none\">nothing recorded</p>";
  constexpr double row = 19;
  constexpr double gap = 6;
  constexpr double top = 22;

  std::vector<int> depths(t.lanes.size(), 1);
  for (const TimelineBar& bar : t.bars) {
    int& depth = depths.at(static_cast<std::size_t>(bar.lane));
    depth = std::max(depth, std::min(bar.depth + 1, t.max_depth));
  }
  double left = 0;
  for (const Timeline::Lane& lane : t.lanes) left = std::max({left, text_width(lane.label), text_width(lane.group)});
  left = std::min(left + 14, 190.0);
  const double w = t.width - left - 12;

  std::vector<double> ys;
  std::string labels;
  double y = top;
  for (std::size_t i = 0; i < t.lanes.size(); ++i) {
    const Timeline::Lane& lane = t.lanes[i];
    if (!lane.group.empty() && (i == 0 || lane.group != t.lanes[i - 1].group)) {
      y += i == 0 ? 4 : 8;
      add(labels, "<text class=\"group\" x=\"0\" y=\"{}\">{}</text>", px(y + 12),
          escape_html(shortened(lane.group, left)));
      y += 18;
    }
    const double height = depths[i] * row + gap;
    add(labels, "<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\"/>", px(left), px(y), px(w),
        px(height - 3));
    add(labels, "<text x=\"0\" y=\"{}\">{}</text>", px(y + 15), escape_html(shortened(lane.label, left - 8)));
    ys.push_back(y + 1.5);
    y += height;
  }
  const double bottom = y + 4;
  const auto at_x = [&](double seconds) { return left + w * std::clamp((seconds - t.start) / span, 0.0, 1.0); };

  // Ticks of time, counted from the start of what is shown.
  const Axis axis = Axis::make(0, span, std::max(2, static_cast<int>(w / 110)), NumberFormat::plain, false, false);
  const double step = axis.ticks.size() > 1 ? axis.ticks[1] - axis.ticks[0] : span;
  std::string out = "<figure class=\"timeline\">";
  add(out, "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"timeline\"><g class=\"axis\">", px(t.width),
      px(bottom + 22));
  std::string grid;
  for (const double tick : axis.ticks) {
    const double at = left + w * axis.position(tick);
    add(grid, "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>", px(at), px(top), px(bottom));
    const std::string label = time_label(tick, step);
    const bool last = at + text_width(label) / 2 > t.width;
    add(grid, "<text x=\"{}\" y=\"{}\" text-anchor=\"{}\">{}</text>", px(last ? t.width : at), px(bottom + 16),
        last ? "end" : "middle", label);
  }
  out += labels + grid + "</g>";

  double free_from = 0;
  for (const auto& [seconds, label] : t.marks) {
    if (seconds < t.start || seconds > t.end) continue;
    const double at = at_x(seconds);
    add(out, "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"8\" y2=\"{1}\"/>", px(at), px(bottom));
    if (at < free_from || at + 5 + text_width(label) > t.width) continue;
    add(out, "<text class=\"marked\" x=\"{}\" y=\"14\">{}</text>", px(at + 5), escape_html(label));
    free_from = at + text_width(label) + 14;
  }

  // Bars of one row and colour that come within a pixel of each other and are themselves no wider are drawn as one.
  std::vector<const TimelineBar*> order;
  for (const TimelineBar& bar : t.bars) {
    if (bar.depth < t.max_depth && bar.end >= t.start && bar.start <= t.end) order.push_back(&bar);
  }
  std::ranges::stable_sort(order, [](const TimelineBar* a, const TimelineBar* b) {
    return std::tie(a->lane, a->depth, a->start) < std::tie(b->lane, b->depth, b->start);
  });
  for (std::size_t i = 0; i < order.size();) {
    const TimelineBar& first = *order[i];
    const double x0 = at_x(first.start);
    double x1 = at_x(first.end);
    std::size_t next = i + 1;
    while (x1 - x0 < 1 && next < order.size() && order[next]->lane == first.lane && order[next]->depth == first.depth &&
           order[next]->color == first.color && at_x(order[next]->end) - x0 < 1.5) {
      x1 = std::max(x1, at_x(order[next]->end));
      ++next;
    }
    const double width = std::max(x1 - x0 - (x1 - x0 > 3 ? 0.8 : 0), 0.7);
    const double at_y = ys[static_cast<std::size_t>(first.lane)] + first.depth * row;
    const std::string tooltip = next == i + 1 ? first.tooltip : fmt::format("{} short spans", next - i);
    add(out, "<g class=\"{}\"><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"><title>{}</title></rect>",
        color_class(first.color), px(x0), px(at_y), px(width), px(row - 2), width > 6 ? "2.5" : "0",
        escape_html(tooltip));
    if (const std::string label = shortened(first.label, width - 8); next == i + 1 && !label.empty()) {
      add(out, "<text x=\"{}\" y=\"{}\">{}</text>", px(x0 + 4.5), px(at_y + 12.5), escape_html(label));
    }
    out += "</g>";
    i = next;
  }
  return out + "</svg></figure>";
}

}  // namespace lamina::tools
