#include "lamina/tools/chart/line_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "lamina/core/trace.hpp"
#include "lamina/tools/chart/axis.hpp"
#include "lamina/tools/chart/legend.hpp"
#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

namespace {

constexpr std::size_t kHoverPoints = 240;  // values a reader can point at, a series

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();
  void include(double v) {
    lo = std::min(lo, v);
    hi = std::max(hi, v);
  }
  bool empty() const { return lo > hi; }
};

bool wants_log(const LineChart& chart) {
  if (chart.scale != YScale::automatic) return chart.scale == YScale::log;
  Range positive;
  for (const Series& s : chart.series) {
    for (const double v : s.y) {
      if (!drawable(v)) continue;
      if (v < 0) return false;
      if (v > 0) positive.include(v);
    }
  }
  return !positive.empty() && positive.hi / positive.lo > 100;
}

// What the y axis must hold: every bold point, and all but the rarest of the noise (a spike would flatten the rest).
Range y_range(const std::vector<Drawn>& drawn) {
  Range range;
  for (const Drawn& d : drawn) {
    for (const Points& run : d.line) {
      for (const auto& p : run) range.include(p.second);
    }
    std::vector<double> noise;
    for (const Points& run : d.raw) {
      for (const auto& p : run) noise.push_back(p.second);
    }
    if (noise.empty()) continue;
    // Where the extremes are not far beyond, they are shown; rare spikes are cut off.
    std::ranges::sort(noise);
    const std::size_t cut = noise.size() / 200;
    const double low = noise[cut];
    const double high = noise[noise.size() - 1 - cut];
    range.include(noise.front() >= low - 0.5 * (high - low) ? noise.front() : low);
    range.include(noise.back() <= high + 0.5 * (high - low) ? noise.back() : high);
  }
  return range;
}

// Labels that would touch are pushed apart, downwards and then back up from the lower end.
void spread(std::vector<double*> ys, double gap, double lo, double hi) {
  std::ranges::sort(ys, {}, [](const double* y) { return *y; });
  double floor = lo;
  for (double* y : ys) {
    *y = std::max(*y, floor);
    floor = *y + gap;
  }
  double ceiling = hi;
  for (auto y = ys.rbegin(); y != ys.rend(); ++y) {
    **y = std::min(**y, ceiling);
    ceiling = **y - gap;
  }
}

}  // namespace

bool has_values(const LineChart& chart) {
  return std::ranges::any_of(chart.series, [](const Series& s) { return !runs_of(s.x, s.y, false).empty(); });
}

std::string line_chart(const LineChart& chart) {
  const bool log = wants_log(chart);
  std::vector<Drawn> drawn;
  Range xs;
  for (const Series& s : chart.series) {
    Drawn d = prepare(s, log);
    if (d.count == 0) continue;
    for (const Points& run : d.line) {
      xs.include(run.front().first);
      xs.include(run.back().first);
    }
    drawn.push_back(std::move(d));
  }

  std::string out = "<figure class=\"chart\">";
  add(out, "<figcaption><b>{}</b>", escape_html(chart.title));
  if (log && chart.scale == YScale::automatic) out += "<span>log scale</span>";
  if (!chart.note.empty()) add(out, "<span>{}</span>", escape_html(chart.note));
  if (chart.legend) {
    std::vector<LegendItem> names;
    for (const Drawn& d : drawn) names.push_back({d.series->name, d.series->color});
    out += legend(names);
  }
  out += "</figcaption>";
  if (drawn.empty()) return out + "<p class=\"none\">nothing recorded</p></figure>";

  const Range ys = y_range(drawn);
  if (chart.x_range) xs = {chart.x_range->first, chart.x_range->second};
  const Axis y = Axis::make(ys.lo, ys.hi, std::max(3, static_cast<int>(chart.height / 60)), chart.y_format, log);

  double left = 0;
  for (const std::string& label : y.labels) left = std::max(left, text_width(label));
  left += 12;
  const bool ends = drawn.size() <= 5;
  double right = 14;
  std::vector<std::string> end_texts;
  for (const Drawn& d : drawn) {
    const double last = d.line.back().back().second;
    const bool zero = !log && std::abs(last) < 1e-5 * (y.hi - y.lo);  // "1.76e-13" would say nothing more
    end_texts.push_back(value_text(zero ? 0 : last, chart.y_format));
    if (ends) right = std::max(right, text_width(end_texts.back()) + 14);
  }
  const double top = 10;
  const double bottom = 44;
  const double w = std::max(chart.width - left - right, 60.0);
  const double h = chart.height - top - bottom;

  // As many x ticks as have room beside each other.
  Axis x;
  for (int target = std::max(2, static_cast<int>(w / 70)); target >= 1; --target) {
    x = Axis::make(xs.lo, xs.hi, target, NumberFormat::count, false, false);
    double widest = 0;
    for (const std::string& label : x.labels) widest = std::max(widest, text_width(label));
    if (x.ticks.size() < 2 || (x.position(x.ticks[1]) - x.position(x.ticks[0])) * w > widest + 14) break;
  }
  const auto at_x = [&](double v) { return left + w * x.position(v); };
  const auto at_y = [&](double v) { return top + h * (1 - y.position(v)); };

  std::string hover = "[";
  std::string lines;
  std::vector<double> end_ys;
  const auto budget = static_cast<std::size_t>(w * 2.5);
  const auto polyline = [&](const Points& points, std::string_view cls, double x0, double y0) {
    if (points.size() == 1) {
      add(lines, "<circle class=\"{}\" cx=\"{}\" cy=\"{}\" r=\"3\"/>", cls, px(at_x(points[0].first) - x0),
          px(at_y(points[0].second) - y0));
      return;
    }
    add(lines, "<polyline class=\"{}\" points=\"", cls);
    for (std::size_t i = 0; i < points.size(); ++i) {
      add(lines, "{}{},{}", i == 0 ? "" : " ", px(at_x(points[i].first) - x0), px(at_y(points[i].second) - y0));
    }
    lines += "\"/>";
  };
  // The raw values are drawn below everything, cut off at the frame by a nested svg.
  add(lines, "<svg x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">", px(left), px(top), px(w), px(h));
  for (const Drawn& d : drawn) {
    add(lines, "<g class=\"{}\">", color_class(d.series->color));
    for (const Points& run : d.raw) polyline(thinned(run, budget * run.size() / d.count + 8), "raw", left, top);
    lines += "</g>";
  }
  lines += "</svg>";
  for (const Drawn& d : drawn) {
    add(lines, "<g class=\"{}\">", color_class(d.series->color));
    const bool bold_is_smooth = !d.raw.empty();
    for (const Points& run : d.line) {
      const std::size_t share = budget * run.size() / d.count + 8;
      polyline(bold_is_smooth ? sampled(run, share / 2) : thinned(run, share), d.series->dashed ? "line dash" : "line",
               0, 0);
      if (d.count <= 30 && run.size() > 1) {
        for (const auto& p : run) {
          add(lines, "<circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.6\"/>", px(at_x(p.first)), px(at_y(p.second)));
        }
      }
    }
    const auto& last = d.line.back().back();
    add(lines, "<circle class=\"end\" cx=\"{}\" cy=\"{}\" r=\"3.6\"/></g>", px(at_x(last.first)),
        px(at_y(last.second)));
    end_ys.push_back(at_y(last.second));

    Points all;
    for (const Points& run : d.line) all.insert(all.end(), run.begin(), run.end());
    add(hover, "{}{{\"n\":", hover.size() > 1 ? "," : "");
    lamina::detail::append_json_string(hover, d.series->name);
    add(hover, ",\"c\":\"{}\",\"p\":[", color_class(d.series->color));
    bool first = true;
    for (const auto& p : sampled(all, kHoverPoints)) {
      add(hover, "{}[{:.1f},{:.1f},{:.9g},\"{}\"]", first ? "" : ",", at_x(p.first), at_y(p.second), p.first,
          value_text(p.second, chart.y_format));
      first = false;
    }
    hover += "]}";
  }
  hover += "]";

  add(out, "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"", px(chart.width),
      px(chart.height), escape_html(chart.title));
  add(out, " data-box=\"{},{},{},{}\" data-xname=\"{}\" data-hover=\"{}\">", px(left), px(top), px(w), px(h),
      escape_html(chart.x_label), escape_html(hover));
  out += "<g class=\"axis\">";
  for (std::size_t i = 0; i < y.ticks.size(); ++i) {
    const double at = at_y(y.ticks[i]);
    add(out, "<line class=\"{}\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", i == 0 ? "base" : "grid", px(left),
        px(left + w), px(at), px(at));
    add(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", px(left - 8), px(at + 4), y.labels[i]);
  }
  for (std::size_t i = 0; i < x.ticks.size(); ++i) {
    const double at = at_x(x.ticks[i]);
    add(out, "<line class=\"base\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>", px(at), px(top + h),
        px(top + h + 4));
    add(out, "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", px(at), px(top + h + 18), x.labels[i]);
  }
  add(out, "<text class=\"name\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>", px(left + w / 2),
      px(chart.height - 6), escape_html(chart.x_label));
  out += lines;
  if (ends) {
    std::vector<double*> places;
    for (double& v : end_ys) places.push_back(&v);
    spread(places, 14, top + 4, top + h);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      const double at = at_x(drawn[i].line.back().back().first);
      add(out, "<text class=\"value {}\" x=\"{}\" y=\"{}\">{}</text>", color_class(drawn[i].series->color), px(at + 8),
          px(end_ys[i] + 4), escape_html(end_texts[i]));
    }
  }
  return out + "</svg></figure>";
}

}  // namespace lamina::tools
