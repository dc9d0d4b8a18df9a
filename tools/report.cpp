#include "lamina/tools/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>

#include "lamina/tools/chart.hpp"
#include "lamina/tools/report_style.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

constexpr std::size_t kTopOps = 12;  // of one run; side by side a few less
constexpr std::size_t kMaxWorkers = 32;
constexpr std::size_t kMaxLanes = 48;
constexpr std::size_t kStepsShown = 3;

template <class... A>
void add(std::string& out, fmt::format_string<A...> format, A&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<A>(args)...);
}

using Runs = std::span<const RunReport>;
using Names = std::vector<std::string>;

template <class T>
double number(const std::optional<T>& value) {
  return value ? static_cast<double>(*value) : kAbsent;
}

// ---- numbers as the page writes them
// ---------------------------------------------------------------------------------

std::string seconds_text(double value) {
  std::string text = human_seconds(value);
  if (text.ends_with(" us")) text.replace(text.size() - 2, 1, "µ");
  return text;
}
std::string percent_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.{}f}%", value * 100, std::abs(value) < 0.9995 ? 1 : 0) : "-";
}
std::string signed_percent(double value) {
  return fmt::format("{}{:.1f}%", value < 0 ? "−" : "+", std::abs(value) * 100);
}
std::string loss_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-3 || size >= 1e4)) return fmt::format("{:.3g}", value);
  return fmt::format("{:.{}f}", value, size < 10 ? 3 : size < 100 ? 2 : 1);
}
std::string speed_text(double value) {
  return std::isfinite(value) ? human_count(value < 100 ? value : std::round(value)) + " /s" : "-";
}

// A dotted name may break after its dots.
std::string breakable(std::string_view name) {
  std::string out;
  for (const char c : escape_html(name)) {
    out += c;
    if (c == '.') out += "<wbr>";
  }
  return out;
}

// The number large, what follows its last space small: "1.50 <small>GiB</small>".
std::string with_small_unit(const std::string& text) {
  const auto space = text.rfind(' ');
  if (space == std::string::npos || text.find('m') < space || text.find('h') < space || text.find('d') < space) {
    return escape_html(text);
  }
  return escape_html(text.substr(0, space)) + "<small>" + escape_html(text.substr(space + 1)) + "</small>";
}

double largest_peak(const RunRecord& r) {
  double peak = number(r.measured.peak_bytes);
  for (const RunRecord::Worker& w : r.per_worker) peak = std::fmax(peak, number(w.peak_bytes));
  return peak;
}

// The last finite value of a member of the history.
double last_of(const RunRecord& r, double RunRecord::Point::*member) {
  for (auto p = r.history.rbegin(); p != r.history.rend(); ++p) {
    if (std::isfinite((*p).*member)) return (*p).*member;
  }
  return kAbsent;
}

double best_accuracy(const RunRecord& r) {
  double best = r.metrics.test_accuracy;
  for (const RunRecord::Point& p : r.history) best = std::fmax(best, p.test_accuracy);
  return best;
}

double or_else(double value, double otherwise) { return std::isfinite(value) ? value : otherwise; }

// ---- names
// -----------------------------------------------------------------------------------------------------------

std::string joined(const Names& parts, std::string_view separator = " · ") {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

// What describes a run in a few words, each part apart.
Names parts_of(const RunRecord& r) {
  const auto counted = [](const std::optional<std::int64_t>& n, std::string_view what) {
    return n ? fmt::format("{} {}{}", *n, what, *n == 1 ? "" : "s") : std::string();
  };
  return {r.model, r.strategy, r.data, counted(r.workers, "worker"), r.seed ? fmt::format("seed {}", *r.seed) : ""};
}

// A name for each run: what tells it from the others.
Names names_of(Runs runs) {
  std::vector<Names> parts;
  for (const RunReport& run : runs) parts.push_back(parts_of(run.record));
  Names names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].title.empty()) {
      names.push_back(runs[i].title);
      continue;
    }
    Names telling;
    for (std::size_t p = 0; p < parts[i].size(); ++p) {
      const bool differs = std::ranges::any_of(parts, [&](const Names& other) { return other[p] != parts[0][p]; });
      if (differs || (runs.size() == 1 && p < 2)) telling.push_back(parts[i][p]);
    }
    names.push_back(joined(telling));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = fmt::format("run {}", i + 1);
  }
  const Names plain = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(plain, plain[i]) > 1) names[i] += fmt::format(" ({})", i + 1);
  }
  return names;
}

// What all runs have in common.
std::string common_parts(Runs runs) {
  Names common = parts_of(runs[0].record);
  for (const RunReport& run : runs) {
    const Names parts = parts_of(run.record);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p] != common[p]) common[p].clear();
    }
  }
  return joined(common);
}

int color_of(std::size_t run) { return static_cast<int>(run % kChartColors); }

std::string chip(std::size_t run) { return fmt::format("<i class=\"c{}\"></i>", color_of(run)); }

std::string run_heading(Runs runs, const Names& names, std::size_t run, std::string_view what) {
  if (runs.size() == 1) return fmt::format("<h3>{}</h3>", escape_html(what));
  return fmt::format("<h3>{} {} <small>{}</small></h3>", chip(run), escape_html(names[run]), escape_html(what));
}

// ---- headline cards
// --------------------------------------------------------------------------------------------------

struct Headline {
  std::string label;
  std::function<double(const RunRecord&)> value;
  std::function<std::string(double)> text;
  std::function<std::string(const RunRecord&)> detail;  // with one run only
  int better;                                           // +1 more, -1 less
};

std::vector<Headline> headlines() {
  using R = const RunRecord&;
  return {
      {"Test accuracy",
       [](R r) { return or_else(r.metrics.test_accuracy, last_of(r, &RunRecord::Point::test_accuracy)); }, percent_text,
       [](R r) { return std::isfinite(best_accuracy(r)) ? "best " + percent_text(best_accuracy(r)) : std::string(); },
       +1},
      {"Loss",
       [](R r) {
         const double test = or_else(r.metrics.test_loss, last_of(r, &RunRecord::Point::test_loss));
         return or_else(test, or_else(r.metrics.train_loss, last_of(r, &RunRecord::Point::train_loss)));
       },
       loss_text,
       [](R r) {
         const bool test = std::isfinite(or_else(r.metrics.test_loss, last_of(r, &RunRecord::Point::test_loss)));
         const double train = or_else(r.metrics.train_loss, last_of(r, &RunRecord::Point::train_loss));
         if (!std::isfinite(train)) return std::string(test ? "on test data" : "");
         return test ? fmt::format("test; training {}", loss_text(train)) : std::string("training");
       },
       -1},
      {"Throughput", [](R r) { return r.examples_per_s; }, speed_text,
       [](R r) { return r.examples ? human_count(number(r.examples)) + " examples" : std::string(); }, +1},
      {"Peak memory", largest_peak, human_bytes,
       [](R r) {
         if (r.predicted.peak_bytes) return "predicted " + human_bytes(number(r.predicted.peak_bytes));
         return std::string(r.per_worker.size() > 1 ? "largest worker" : "");
       },
       -1},
      {"Compute", [](R r) { return number(r.flops_total); }, human_flops,
       [](R r) {
         return r.flops_sequential ? human_flops(number(r.flops_sequential)) + " in sequence" : std::string();
       },
       -1},
      {"Wall time", [](R r) { return r.wall_s; }, seconds_text,
       [](R r) { return r.steps ? fmt::format("{} steps", human_count(number(r.steps))) : std::string(); }, -1},
  };
}

std::string cards(Runs runs, const Names& names) {
  std::vector<Headline> shown = headlines();
  std::erase_if(shown, [&](const Headline& h) {
    return std::ranges::none_of(runs, [&](const RunReport& run) { return std::isfinite(h.value(run.record)); });
  });
  if (shown.empty()) return {};
  std::string out = fmt::format("<section class=\"cards\" style=\"--n:{}\">", shown.size());
  for (const Headline& h : shown) {
    add(out, "<div class=\"card\"><div class=\"label\">{}</div>", escape_html(h.label));
    if (runs.size() == 1) {
      const double value = h.value(runs[0].record);
      add(out, "<div class=\"big\">{}</div><div class=\"sub\">{}</div>",
          std::isfinite(value) ? with_small_unit(h.text(value)) : "–", escape_html(h.detail(runs[0].record)));
    } else {
      double best = kAbsent;
      for (const RunReport& run : runs) {
        const double value = h.value(run.record);
        best = h.better > 0 ? std::fmax(best, value) : std::fmin(best, value);
      }
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const double value = h.value(runs[i].record);
        add(out, "<div class=\"many{}\" title=\"{}\">{}<span>{}</span></div>", value == best ? " best" : "",
            escape_html(names[i]), chip(i), std::isfinite(value) ? with_small_unit(h.text(value)) : "–");
      }
    }
    out += "</div>";
  }
  return out + "</section>";
}

// ---- curves
// ----------------------------------------------------------------------------------------------------------

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

std::string learning(Runs runs, const Names& names) {
  const bool by_examples = std::ranges::all_of(runs, [](const RunReport& run) {
    const auto& h = run.record.history;
    return h.empty() || std::ranges::any_of(h, [](const auto& p) { return p.examples > 0; });
  });
  const std::string x_label = by_examples ? "examples" : "steps";
  std::vector<LineChart> charts;
  const auto chart = [&](std::string title, double RunRecord::Point::*member, NumberFormat format) {
    LineChart c{.title = std::move(title), .x_label = x_label, .note = {}, .series = {}, .y_format = format};
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

// ---- where the time goes
// ---------------------------------------------------------------------------------------------

double part(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

std::string worker_bars(const RunRecord& r) {
  std::vector<BarRow> rows;
  bool overlapped = false;
  for (const RunRecord::Worker& w : r.per_worker) {
    if (rows.size() == kMaxWorkers) break;
    const double total = part(w.compute_s) + part(w.exposed_s) + part(w.input_s) + part(w.idle_s);
    const auto bar = [&](std::string name, double value, int color) {
      const std::string share = total > 0 ? percent_text(part(value) / total) : "-";
      return BarPart{value, color, std::move(name), fmt::format("{} ({})", seconds_text(value), share)};
    };
    overlapped = overlapped || part(w.overlapped_s) > 0;
    rows.push_back(
        {.label = w.device.empty() ? fmt::format("rank {}", w.rank) : fmt::format("rank {} · {}", w.rank, w.device),
         .parts = {bar("compute", w.compute_s, 0), bar("exposed communication", w.exposed_s, 1),
                   bar("waiting for input", w.input_s, 3), bar("idle", w.idle_s, kMuted)},
         .underline = part(w.overlapped_s),
         .underline_color = 1,
         .underline_text = fmt::format("communication behind compute: {}", seconds_text(w.overlapped_s)),
         .end_text = seconds_text(total)});
  }
  std::vector<LegendItem> names = {
      {"compute", 0}, {"exposed communication", 1}, {"waiting for input", 3}, {"idle", kMuted}};
  if (overlapped) names.push_back({"communication behind compute", 1, true});
  std::string out = legend(names) + stacked_bars(rows);
  if (r.per_worker.size() > rows.size()) {
    add(out, "<p class=\"none\">and {} more workers</p>", r.per_worker.size() - rows.size());
  }
  return out;
}

std::string op_table(const std::vector<OpTime>& all, std::size_t run, std::size_t rows) {
  std::vector<OpTime> ops = all;
  std::ranges::stable_sort(ops, std::greater<>{}, [](const OpTime& op) { return part(op.seconds); });
  double total = 0;
  for (const OpTime& op : ops) total += part(op.seconds);
  const double longest = ops.empty() ? 0 : part(ops[0].seconds);
  std::string out =
      "<div class=\"scroll\"><table><thead><tr><th>operation</th><th class=\"bar\"></th><th class=\"n\">share</th><th "
      "class=\"n\">time</th>"
      "<th class=\"n\">calls</th><th class=\"n more\">a call</th><th class=\"n rate\">GFLOP/s</th><th class=\"n "
      "more\">GB/s</th></tr>"
      "</thead><tbody>";
  const auto row = [&](const OpTime& op) {
    const double s = part(op.seconds);
    const auto rate = [&](std::int64_t amount) {
      if (amount <= 0 || s <= 0) return std::string("–");
      const double value = static_cast<double>(amount) / s * 1e-9;
      return value >= 1e4 ? human_count(value)
                          : fmt::format("{:.{}f}", value,
                                        value < 9.995   ? 2
                                        : value < 99.95 ? 1
                                                        : 0);
    };
    add(out, "<tr><td class=\"name\">{}</td><td class=\"share c{}\"><div><b style=\"width:{:.1f}%\"></b></div></td>",
        breakable(op.name), color_of(run), longest > 0 ? 100 * s / longest : 0.0);
    add(out, "<td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n more\">{}</td>",
        percent_text(total > 0 ? s / total : 0), seconds_text(s), human_count(static_cast<double>(op.calls)),
        op.calls > 0 ? seconds_text(s / static_cast<double>(op.calls)) : "–");
    add(out, "<td class=\"n rate\">{}</td><td class=\"n more\">{}</td></tr>", rate(op.flops), rate(op.bytes));
  };
  const std::size_t shown = ops.size() <= rows + 1 ? ops.size() : rows;
  for (std::size_t i = 0; i < shown; ++i) row(ops[i]);
  if (shown < ops.size()) {
    OpTime rest{.name = fmt::format("{} more", ops.size() - shown)};
    for (std::size_t i = shown; i < ops.size(); ++i) {
      rest.calls += ops[i].calls;
      rest.seconds += part(ops[i].seconds);
      rest.flops += ops[i].flops;
      rest.bytes += ops[i].bytes;
    }
    row(rest);
  }
  return out + "</tbody></table></div>";
}

bool has_prediction(const RunRecord& r) { return std::isfinite(r.predicted.step_s) || r.predicted.peak_bytes; }

std::string prediction_table(Runs runs, const Names& names) {
  if (std::ranges::none_of(runs, [](const RunReport& run) { return has_prediction(run.record); })) return {};
  std::string out = "<div class=\"card\"><h3>Predicted and measured</h3><div class=\"scroll\"><table><thead><tr>";
  if (runs.size() > 1) out += "<th>run</th>";
  out +=
      "<th></th><th class=\"n\">predicted</th><th class=\"n\">measured</th><th class=\"n\">off "
      "by</th></tr></thead><tbody>";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& r = runs[i].record;
    const auto row = [&](std::string_view what, double predicted, double measured, auto text) {
      if (!std::isfinite(predicted)) return;
      out += "<tr>";
      if (runs.size() > 1) add(out, "<td>{} {}</td>", chip(i), escape_html(names[i]));
      const bool both = std::isfinite(measured) && measured > 0;
      add(out, "<th>{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>", what,
          text(predicted), text(measured), both ? signed_percent(predicted / measured - 1) : "–");
    };
    row("time a step", r.predicted.step_s, r.measured.step_s, seconds_text);
    row("peak memory", number(r.predicted.peak_bytes), number(r.measured.peak_bytes), human_bytes);
  }
  return out + "</tbody></table></div></div>";
}

std::string time_section(Runs runs, const Names& names) {
  std::string bars;
  std::string tables;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].record.per_worker.empty()) {
      add(bars, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "Time of each worker"),
          worker_bars(runs[i].record));
    }
    if (!runs[i].ops.empty()) {
      add(tables, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "Operations by time"),
          op_table(runs[i].ops, i, runs.size() == 1 ? kTopOps : kTopOps * 2 / 3));
    }
  }
  const std::string predicted = prediction_table(runs, names);
  if (bars.empty() && tables.empty() && predicted.empty()) return {};
  std::string out = "<h2>Where the time goes</h2><div class=\"stack\">";
  if (runs.size() == 1) {  // the short prediction fits beside the bars
    const bool beside = !bars.empty() && !predicted.empty();
    add(out, "<div class=\"{}\">{}{}</div>{}", beside ? "lead" : "stack", bars, predicted, tables);
  } else {
    for (const std::string& group : {bars, tables}) {
      if (!group.empty()) add(out, "<div class=\"pair\">{}</div>", group);
    }
    out += predicted;
  }
  return out + "</div>";
}

// ---- the timeline
// ----------------------------------------------------------------------------------------------------

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

// Known kinds of work have the colours they have in the bars; others take what is left, in order.
class CategoryColors {
 public:
  int operator()(std::string_view category) {
    static const std::map<std::string_view, int> known = {
        {"compute", 0},       {"forward", 0},    {"op", 7},        {"backward", 4},  {"comm", 1},
        {"communication", 1}, {"all-reduce", 1}, {"send", 1},      {"receive", 1},   {"input", 3},
        {"load", 3},          {"data", 3},       {"update", 2},    {"optimizer", 2}, {"loss", 5},
        {"eval", 6},          {"step", 7},       {"idle", kMuted}, {"wait", kMuted}, {"", 7}};
    const auto place = known.find(category);
    if (place != known.end()) return place->second;
    static constexpr int rest[] = {6, 5, 7, 2, 4, 3};
    const auto [mine, added] = given_.try_emplace(std::string(category), rest[given_.size() % std::size(rest)]);
    return mine->second;
  }

 private:
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

  CategoryColors color;
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

std::string timeline_section(Runs runs, const Names& names) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].trace || runs[i].trace->spans.empty()) continue;
    add(out, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "A few steps, as measured"),
        timeline_of(*runs[i].trace));
  }
  return out.empty() ? out : "<h2>Timeline</h2><div class=\"stack\">" + out + "</div>";
}

// ---- configuration
// ---------------------------------------------------------------------------------------------------

std::string option_text(const nlohmann::ordered_json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string configuration(Runs runs, const Names& names) {
  std::vector<std::pair<std::string, Names>> rows;
  const auto row = [&](const std::string& key, const std::function<std::string(const RunRecord&)>& value) {
    Names values;
    for (const RunReport& run : runs) values.push_back(value(run.record));
    if (std::ranges::any_of(values, [](const std::string& v) { return !v.empty(); })) rows.emplace_back(key, values);
  };
  const auto whole = [](const auto& n) { return n ? fmt::format("{}", *n) : std::string(); };
  row("model", [](const RunRecord& r) { return r.model; });
  row("data", [](const RunRecord& r) { return r.data; });
  row("strategy", [](const RunRecord& r) { return r.strategy; });
  row("workers", [&](const RunRecord& r) { return whole(r.workers); });
  row("devices", [](const RunRecord& r) { return joined(r.devices, ", "); });
  row("seed", [&](const RunRecord& r) { return whole(r.seed); });
  row("steps", [&](const RunRecord& r) { return whole(r.steps); });
  row("examples", [&](const RunRecord& r) { return whole(r.examples); });
  row("bytes sent",
      [](const RunRecord& r) { return r.bytes_sent ? human_bytes(number(r.bytes_sent)) : std::string(); });
  Names more;
  for (const RunReport& run : runs) {
    for (const auto& [key, value] : run.record.metrics.more) {
      if (std::ranges::find(more, key) == more.end()) more.push_back(key);
    }
  }
  for (const std::string& key : more) {
    row(key, [&](const RunRecord& r) {
      for (const auto& [name, value] : r.metrics.more) {
        if (name == key && std::isfinite(value)) return human_number(value, 6);
      }
      return std::string();
    });
  }
  Names keys;
  for (const RunReport& run : runs) {
    if (!run.record.options.is_object()) continue;
    for (const auto& [key, value] : run.record.options.items()) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    row(key, [&](const RunRecord& r) {
      const auto place = r.options.find(key);
      return place == r.options.end() ? std::string() : option_text(*place);
    });
  }
  row("version", [](const RunRecord& r) { return joined({r.build.version, r.build.git}); });
  row("compiler", [](const RunRecord& r) { return r.build.compiler; });
  row("instruction set", [](const RunRecord& r) { return r.build.isa; });

  std::string out = "<h2>Configuration</h2><div class=\"stack\">";
  const auto table = [&](std::size_t begin, std::size_t end) {
    out += "<div class=\"scroll\"><table>";
    if (runs.size() > 1) {
      out += "<thead><tr><th></th>";
      for (std::size_t i = 0; i < runs.size(); ++i) add(out, "<th>{} {}</th>", chip(i), escape_html(names[i]));
      out += "</tr></thead>";
    }
    out += "<tbody>";
    for (std::size_t r = begin; r < end; ++r) {
      const std::string& key = rows[r].first;
      const Names& values = rows[r].second;
      const bool differs = std::ranges::any_of(values, [&](const std::string& v) { return v != values[0]; });
      add(out, "<tr{}><th>{}</th>", differs ? " class=\"differs\"" : "", escape_html(key));
      for (const std::string& v : values) add(out, "<td>{}</td>", v.empty() ? "–" : escape_html(v));
      out += "</tr>";
    }
    out += "</tbody></table></div>";
  };
  if (runs.size() == 1 && rows.size() > 6) {  // one value a row leaves room for two columns
    const std::size_t half = (rows.size() + 1) / 2;
    out += "<div class=\"pair\"><div class=\"card\">";
    table(0, half);
    out += "</div><div class=\"card\">";
    table(half, rows.size());
    out += "</div></div>";
  } else {
    out += "<div class=\"card\">";
    table(0, rows.size());
    out += "</div>";
  }
  std::string commands;
  for (const RunReport& run : runs) {
    if (!run.record.command.empty()) add(commands, "<pre>{}</pre>", escape_html(run.record.command));
  }
  if (!commands.empty()) add(out, "<div class=\"card\"><h3>Command</h3>{}</div>", commands);
  return out + "</div>";
}

// Thin sheets above one another: what a lamina is.
constexpr std::string_view kLogo =
    R"svg(<svg viewBox="0 0 48 48" aria-hidden="true"><g fill="none" stroke-width="2.6" stroke-linejoin="round">)svg"
    R"svg(<path style="stroke:var(--c2)" d="M4 33 24 24 44 33 24 42Z"/>)svg"
    R"svg(<path style="stroke:var(--c1);fill:var(--page)" d="M4 24 24 15 44 24 24 33Z"/>)svg"
    R"svg(<path style="stroke:var(--c0);fill:var(--page)" d="M4 15 24 6 44 15 24 24Z"/></g></svg>)svg";

}  // namespace

std::vector<OpTime> op_times(const TraceSnapshot& trace, std::string_view category) {
  struct Open {
    std::int64_t end;
    std::size_t op;
  };
  std::map<std::uint32_t, std::size_t> index;
  std::vector<OpTime> ops;
  std::vector<std::int64_t> own;
  std::vector<std::vector<Open>> open(trace.lanes.size());
  for (const auto& span : trace.spans) {
    if (!category.empty() && trace.names[span.category] != category) continue;
    const auto [place, added] = index.try_emplace(span.name, ops.size());
    if (added) {
      ops.push_back({.name = trace.names[span.name]});
      own.push_back(0);
    }
    const std::size_t op = place->second;
    auto& around = open.at(static_cast<std::size_t>(span.lane));
    while (!around.empty() && around.back().end <= span.start_ns) around.pop_back();
    own[op] += span.end_ns - span.start_ns;
    if (!around.empty()) own[around.back().op] -= std::min(span.end_ns, around.back().end) - span.start_ns;
    around.push_back({span.end_ns, op});
    ++ops[op].calls;
    ops[op].flops += std::max<std::int64_t>(span.args.flops, 0);
    ops[op].bytes += std::max<std::int64_t>(span.args.bytes, 0);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].seconds = static_cast<double>(own[i]) * 1e-9;
  std::ranges::stable_sort(ops, std::greater<>{}, &OpTime::seconds);
  return ops;
}

std::string render_report(Runs runs) {
  std::string title = "lamina report";
  std::string subtitle = "no runs";
  const Names names = names_of(runs);
  if (runs.size() == 1) {
    const RunRecord& r = runs[0].record;
    title = !runs[0].title.empty() ? runs[0].title : joined({r.model, r.data}, " on ");
    if (title.empty()) title = "lamina report";
    Names parts = parts_of(r);
    if (runs[0].title.empty()) parts[0].clear(), parts[2].clear();
    if (!r.devices.empty() && r.per_worker.size() <= 1) parts.push_back(r.devices[0]);
    subtitle = joined(parts);
  } else if (runs.size() > 1) {
    subtitle = common_parts(runs);
    title = runs.size() <= 3 ? joined(names, " vs. ") : fmt::format("{} runs", runs.size());
  }

  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
  add(out, "<title>{}</title><style>{}</style></head>\n<body><main>", escape_html(title), kReportStyle);
  add(out, "<header>{}<div><h1>{}</h1><p>{}</p></div></header>\n", kLogo, escape_html(title), escape_html(subtitle));
  if (runs.empty()) {
    out += "<div class=\"card\"><p class=\"none\">There is nothing to report.</p></div>";
  } else {
    if (runs.size() > 1) {
      out += "<div class=\"runs\">";
      for (std::size_t i = 0; i < runs.size(); ++i) add(out, "<span>{}{}</span>", chip(i), escape_html(names[i]));
      out += "</div>";
    }
    for (const auto& section : {cards(runs, names), learning(runs, names), time_section(runs, names),
                                timeline_section(runs, names), configuration(runs, names)}) {
      out += section;
      out += '\n';
    }
  }
  out += "<footer>Written by lamina. This page loads nothing.</footer></main>";
  add(out, "<script>{}</script></body></html>\n", kReportScript);
  return out;
}

}  // namespace lamina::tools
