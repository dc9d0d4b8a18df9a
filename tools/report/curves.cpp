// The learning curves. One run's training and test loss share a chart; those of several runs have one each, where every
// run keeps its colour.
#include "lamina/tools/report/sections.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lamina/tools/chart/line_chart.hpp"
#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

namespace {

Series series_of(const RunRecord& r, double RunRecord::Point::*member, bool by_examples, std::string name, int color) {
  Series s{.name = std::move(name), .color = color, .x = {}, .y = {}};
  s.x.reserve(r.history.size());
  s.y.reserve(r.history.size());
  for (const RunRecord::Point& p : r.history) {
    s.x.push_back(static_cast<double>(by_examples ? p.examples : p.step));
    s.y.push_back(p.*member);
  }
  // A resumed or merged history may not be in order; a line must be.
  if (!std::ranges::is_sorted(s.x)) {
    std::vector<std::pair<double, double>> points;
    for (std::size_t i = 0; i < s.x.size(); ++i) points.emplace_back(s.x[i], s.y[i]);
    std::ranges::stable_sort(points, {}, &std::pair<double, double>::first);
    for (std::size_t i = 0; i < points.size(); ++i) std::tie(s.x[i], s.y[i]) = points[i];
  }
  return s;
}

// Of all charts, so that what happened at one time stands at one place.
std::optional<std::pair<double, double>> common_range(Runs runs, bool by_examples) {
  std::optional<std::pair<double, double>> range;
  for (const RunReport& run : runs) {
    for (const RunRecord::Point& p : run.record.history) {
      const auto x = static_cast<double>(by_examples ? p.examples : p.step);
      if (!range) range.emplace(x, x);
      range->first = std::min(range->first, x);
      range->second = std::max(range->second, x);
    }
  }
  // Training starts at nothing; only a record of a part of a run does not.
  if (range && (range->first < 0.25 * range->second || range->first == range->second)) {
    range->first = std::min(range->first, 0.0);
  }
  return range;
}

}  // namespace

std::string curves_section(Runs runs, const Names& names) {
  const bool by_examples = std::ranges::all_of(runs, [](const RunReport& run) {
    const auto& h = run.record.history;
    return h.empty() || std::ranges::any_of(h, [](const auto& p) { return p.examples > 0; });
  });
  const std::string x_label = by_examples ? "examples" : "steps";
  const auto x_range = common_range(runs, by_examples);
  std::vector<LineChart> charts;
  const auto chart = [&](std::string title, double RunRecord::Point::*member, NumberFormat format) {
    LineChart c{.title = std::move(title),
                .x_label = x_label,
                .note = {},
                .series = {},
                .x_range = x_range,
                .y_format = format};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      c.series.push_back(series_of(runs[i].record, member, by_examples, names[i], color_of(i)));
      c.series.back().smooth = member == &RunRecord::Point::train_loss;
    }
    return c;
  };
  if (runs.size() == 1) {
    LineChart c = chart("Loss", &RunRecord::Point::train_loss, NumberFormat::plain);
    c.series[0].name = "training";
    Series test = series_of(runs[0].record, &RunRecord::Point::test_loss, by_examples, "test", 1);
    c.series.push_back(std::move(test));
    charts.push_back(std::move(c));
  } else {
    charts.push_back(chart("Training loss", &RunRecord::Point::train_loss, NumberFormat::plain));
    charts.push_back(chart("Test loss", &RunRecord::Point::test_loss, NumberFormat::plain));
  }
  charts.push_back(chart("Test accuracy", &RunRecord::Point::test_accuracy, NumberFormat::percent));
  charts.push_back(chart("Learning rate", &RunRecord::Point::lr, NumberFormat::plain));
  charts.back().scale = YScale::linear;  // schedules are read by their shape, and many end at zero
  if (runs.size() == 1) {
    charts[1].series[0].color = 2;
    charts[2].series[0].color = 4;
  }
  std::erase_if(charts, [](const LineChart& c) { return !has_values(c); });

  std::string out = "<h2>Learning</h2>";
  if (charts.empty()) return out + "<div class=\"card\"><p class=\"none\">No history was recorded.</p></div>";
  out += "<div class=\"grid\">";
  for (std::size_t i = 0; i < charts.size(); ++i) {
    LineChart& c = charts[i];
    const bool wide = i == 0 && charts.size() % 2 == 1;
    std::size_t shown = 0;
    for (const Series& s : c.series)
      shown += std::ranges::any_of(s.y, [](double v) { return std::isfinite(v); }) ? 1 : 0;
    c.legend = runs.size() == 1 && shown > 1;
    if (wide) {  // scaled down to a telephone its text could not be read: the page carries both and shows one
      add(out, "<div class=\"card wide\"><div class=\"on-narrow\">{}</div>", line_chart(c));
      c.width = 1090;
      c.height = 330;
      add(out, "<div class=\"on-broad\">{}</div></div>", line_chart(c));
    } else {
      add(out, "<div class=\"card\">{}</div>", line_chart(c));
    }
  }
  return out + "</div>";
}

}  // namespace lamina::tools
