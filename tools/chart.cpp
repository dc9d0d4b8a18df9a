#include "lamina/tools/chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <span>
#include <tuple>

#include "lamina/core/trace.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

constexpr double kCharWidth = 7;           // of a 12 px tick label, on the wide side
constexpr double kHuge = 1e150;            // beyond this, differences and products overflow: treated as a gap
constexpr std::size_t kHoverPoints = 240;  // values a reader can point at, a series

template <class... A>
void add(std::string& out, fmt::format_string<A...> format, A&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<A>(args)...);
}

// A coordinate: two decimals, none that are zero.
std::string px(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

double text_width(std::string_view text) { return kCharWidth * static_cast<double>(display_width(text)); }

std::string color_class(int color) { return color < 0 ? "mute" : fmt::format("c{}", color % kChartColors); }

// ---- axes
// ------------------------------------------------------------------------------------------------------------

// The smallest of 1, 2, 5 x 10^k that is at least `raw`.
double nice_step(double raw) {
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= raw * (1 - 1e-9)) return m * power;
  }
  return 10 * power;
}

std::string superscript(int value) {
  static constexpr std::string_view digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = value < 0 ? "⁻" : "";
  for (const char c : fmt::format("{}", std::abs(value))) out += digits[c - '0'];
  return out;
}

// mantissa x 10^exponent, with the digits that tell multiples of `step` apart.
std::string scientific(double value, double step) {
  if (value == 0) return "0";
  int exponent = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double power = std::pow(10, exponent);
  const int digits = std::clamp(exponent - static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  const std::string mantissa = fmt::format("{:.{}f}", value / power, digits);
  if (mantissa == "1") return "10" + superscript(exponent);
  if (mantissa == "-1") return "−10" + superscript(exponent);
  return mantissa + "·10" + superscript(exponent);
}

int decimals_of(double step) { return std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12); }

std::string tick_label(double value, double step, double largest, NumberFormat format) {
  if (std::abs(value) < step * 1e-6) value = 0;
  if (format == NumberFormat::percent && largest < 1e3 && step > 0.9e-7) {
    return fmt::format("{:.{}f}%", value * 100, decimals_of(step * 100));
  }
  if (format == NumberFormat::percent) return scientific(value * 100, step * 100) + "%";
  if (largest >= 1e16 || step < 0.9e-5) return scientific(value, step);
  static constexpr std::string_view units[] = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  double divisor = 1;
  while (largest / divisor >= 1e4 - 1e-6 && unit + 1 < std::size(units)) {
    divisor *= 1000;
    ++unit;
  }
  if (value == 0) return "0";
  return fmt::format("{:.{}f}{}", value / divisor, decimals_of(step / divisor), units[unit]);
}

std::string log_label(double value, NumberFormat format) {
  if (format == NumberFormat::percent) return human_number(value * 100, 3) + "%";
  if (value >= 0.9e-3 && value < 1.1e4) return human_number(value, 6);
  return scientific(value, std::pow(10, std::floor(std::log10(value) + 1e-9)));
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

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = lamina::detail::utf8_sequence(text);
    switch (const char c = text.front()) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default:
        if (length == 0) {
          out += "\xef\xbf\xbd";
        } else if (length > 1 || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f)) {
          out += text.substr(0, length);
        } else if (c == '\n' || c == '\t') {
          out += ' ';
        }
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

// ---- series
// ----------------------------------------------------------------------------------------------------------

namespace {

using Points = std::vector<std::pair<double, double>>;

bool drawable(double v) { return std::isfinite(v) && std::abs(v) < kHuge; }

// The series' finite points, cut where more than one value is missing by the measure of its own spacing.
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

// At most about `limit` points: of every stretch of the x axis its first, lowest, highest and last.
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

// About `limit` evenly chosen points, the last kept.
Points sampled(const Points& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  Points out;
  for (std::size_t i = 0; i < limit; ++i) out.push_back(points[i * (points.size() - 1) / (limit - 1)]);
  return out;
}

struct Drawn {
  const Series* series = nullptr;
  std::vector<Points> raw;
  std::vector<Points> line;  // what is bold: smoothed, or the values themselves
  std::size_t count = 0;
};

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

struct Range {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();
  void include(double v) {
    lo = std::min(lo, v);
    hi = std::max(hi, v);
  }
  bool empty() const { return lo > hi; }
};

std::string value_text(double value, NumberFormat format) {
  if (format == NumberFormat::count) return human_count(value);
  const double shown = format == NumberFormat::percent ? value * 100 : value;
  const std::string_view unit = format == NumberFormat::percent ? "%" : "";
  const double size = std::abs(shown);
  if (size == 0) return fmt::format("0{}", unit);
  if (size < 0.9995e-3 || size >= 99999.5) return scientific(shown, size * 0.02) + std::string(unit);
  return fmt::format("{:#.{}g}{}", shown, size < 1e4 ? 4 : 5, unit);
}

}  // namespace

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

bool has_values(const LineChart& chart) {
  return std::ranges::any_of(chart.series, [](const Series& s) { return !runs_of(s.x, s.y, false).empty(); });
}

// ---- the line chart
// --------------------------------------------------------------------------------------------------

namespace {

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
  if (xs.lo > 0 && xs.lo < 0.1 * xs.hi) xs.lo = 0;  // training starts at nothing; only a resumed run does not
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

// ---- bars and legends
// ------------------------------------------------------------------------------------------------

std::string legend(const std::vector<LegendItem>& items) {
  std::string out = "<div class=\"legend\">";
  for (const LegendItem& item : items) {
    add(out, "<span><i class=\"{}{}\"></i>{}</span>", color_class(item.color), item.thin ? " thin" : "",
        escape_html(item.name));
  }
  return out + "</div>";
}

std::string stacked_bars(const std::vector<BarRow>& rows) {
  const auto amount = [](double v) { return drawable(v) && v > 0 ? v : 0.0; };
  double longest = 0;
  for (const BarRow& row : rows) {
    double total = 0;
    for (const BarPart& part : row.parts) total += amount(part.value);
    longest = std::max({longest, total, amount(row.underline)});
  }
  std::string out = "<figure class=\"bars\">";
  for (const BarRow& row : rows) {
    add(out,
        "<div class=\"row\"><span class=\"who\">{}</span><svg viewBox=\"0 0 1000 30\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"{}\">",
        escape_html(row.label), escape_html(row.label));
    double at = 0;
    for (const BarPart& part : row.parts) {
      const double length = longest > 0 ? 1000 * amount(part.value) / longest : 0;
      if (length <= 0) continue;
      add(out, "<rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"22\"><title>{}: {}</title></rect>",
          color_class(part.color), px(at), px(std::max(length - (length > 4 ? 1.5 : 0), 0.5)), escape_html(part.name),
          escape_html(part.value_text));
      at += length;
    }
    if (const double length = longest > 0 ? 1000 * amount(row.underline) / longest : 0; length > 0) {
      add(out, "<rect class=\"{}\" x=\"0\" y=\"24\" width=\"{}\" height=\"4\"><title>{}</title></rect>",
          color_class(row.underline_color), px(length), escape_html(row.underline_text));
    }
    add(out, "</svg><span class=\"end\">{}</span></div>", escape_html(row.end_text));
  }
  return out + "</figure>";
}

// ---- the timeline
// ----------------------------------------------------------------------------------------------------

namespace {

// A span of time by the size of the steps between ticks.
std::string time_label(double seconds, double step) {
  struct Unit {
    double size;
    std::string_view name;
  };
  static constexpr Unit units[] = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}};
  const Unit* unit = units;
  while (unit + 1 != std::end(units) && step < unit->size * 0.0999) ++unit;
  if (std::abs(seconds) < step * 1e-6) return fmt::format("0 {}", unit->name);
  return fmt::format("{:.{}f} {}", seconds / unit->size, decimals_of(step / unit->size), unit->name);
}

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
