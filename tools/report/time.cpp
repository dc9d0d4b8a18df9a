// Where the time goes: a bar a worker, a table of ops, and what the simulator predicted beside what was measured.
#include "lamina/tools/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/tools/chart/bars.hpp"
#include "lamina/tools/chart/legend.hpp"
#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/report/text.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

constexpr std::size_t kTopOps = 12;  // of one run; side by side a few less
constexpr std::size_t kMaxWorkers = 32;

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

}  // namespace

std::string time_section(Runs runs, const Names& names) {
  std::string bars;
  std::string tables;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].record.per_worker.empty()) {
      add(bars, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "Time of each worker", Colors::work),
          worker_bars(runs[i].record));
    }
    if (!runs[i].ops.empty()) {
      add(tables, "<div class=\"card\">{}{}</div>", run_heading(runs, names, i, "Operations by time", Colors::runs),
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

}  // namespace lamina::tools
