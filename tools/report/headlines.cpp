// The cards on top of the page. A single run has a detail below each number; of several runs the best is marked
// where the runs can be compared.
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

double test_loss(const RunRecord& r) { return or_else(r.metrics.test_loss, last_of(r, &RunRecord::Point::test_loss)); }
double train_loss(const RunRecord& r) {
  return or_else(r.metrics.train_loss, last_of(r, &RunRecord::Point::train_loss));
}

// What runs must have in common for one number to be better than the other.
enum class Fair { same_data, same_model, same_work };

bool comparable(Runs runs, Fair fair) {
  const RunRecord& first = runs[0].record;
  return std::ranges::all_of(runs, [&](const RunReport& run) {
    const RunRecord& r = run.record;
    return r.data == first.data && (fair == Fair::same_data || r.model == first.model) &&
           (fair != Fair::same_work || r.examples == first.examples);
  });
}

struct Headline {
  std::string label;
  std::function<double(const RunRecord&)> value;
  std::function<std::string(double)> text;
  std::function<std::string(const RunRecord&)> detail;  // with one run only
  int better;                                           // +1 more, -1 less
  Fair fair;
};

std::vector<Headline> headlines(Runs runs) {
  using R = const RunRecord&;
  // Of one kind for all: a training loss is not beside a test loss.
  const bool tested =
      std::ranges::any_of(runs, [](const RunReport& run) { return std::isfinite(test_loss(run.record)); });
  return {
      {"Test accuracy",
       [](R r) { return or_else(r.metrics.test_accuracy, last_of(r, &RunRecord::Point::test_accuracy)); }, percent_text,
       [](R r) { return std::isfinite(best_accuracy(r)) ? "best " + percent_text(best_accuracy(r)) : std::string(); },
       +1, Fair::same_data},
      {tested ? "Test loss" : "Training loss", tested ? test_loss : train_loss, loss_text,
       [tested](R r) {
         return tested && std::isfinite(train_loss(r)) ? "training " + loss_text(train_loss(r)) : std::string();
       },
       -1, Fair::same_data},
      {"Throughput", [](R r) { return r.examples_per_s; }, speed_text,
       [](R r) { return r.examples ? human_count(number(r.examples)) + " examples" : std::string(); }, +1,
       Fair::same_model},
      {"Peak memory", largest_peak, human_bytes,
       [](R r) {
         if (r.predicted.peak_bytes) return "predicted " + human_bytes(number(r.predicted.peak_bytes));
         return std::string(r.per_worker.size() > 1 ? "largest worker" : "");
       },
       -1, Fair::same_model},
      {"Compute", [](R r) { return number(r.flops_total); }, human_flops,
       [](R r) {
         return r.flops_sequential ? human_flops(number(r.flops_sequential)) + " in sequence" : std::string();
       },
       -1, Fair::same_work},
      {"Wall time", [](R r) { return r.wall_s; }, seconds_text,
       [](R r) { return r.steps ? fmt::format("{} steps", human_count(number(r.steps))) : std::string(); }, -1,
       Fair::same_work},
  };
}

}  // namespace

std::string headlines_section(Runs runs, const Names& names) {
  std::vector<Headline> shown = headlines(runs);
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
      const bool marked = comparable(runs, h.fair) && std::ranges::any_of(runs, [&](const RunReport& run) {
                            const double value = h.value(run.record);
                            return std::isfinite(value) && h.text(value) != h.text(best);
                          });
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const double value = h.value(runs[i].record);
        add(out, "<div class=\"many{}\" title=\"{}\">{}<span>{}</span></div>",
            marked && h.text(value) == h.text(best) ? " best" : "", escape_html(names[i]), chip(i),
            std::isfinite(value) ? with_small_unit(h.text(value)) : "–");
      }
    }
    out += "</div>";
  }
  return out + "</section>";
}

}  // namespace lamina::tools
