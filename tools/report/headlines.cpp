// The cards on top of the page. A single run has a detail below each number; of several runs the best is marked.
#include "lamina/tools/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/report/text.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

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

}  // namespace

std::string headlines_section(Runs runs, const Names& names) {
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

}  // namespace lamina::tools
