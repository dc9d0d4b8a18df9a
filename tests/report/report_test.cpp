#include "lamina/tools/report/page.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

namespace lamina::tools {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

RunReport example(int points, std::string strategy = "local-greedy") {
  RunReport run;
  RunRecord& r = run.record;
  r.command = "lamina train --strategy " + strategy;
  r.model = "mlp";
  r.data = "fashion-mnist";
  r.strategy = std::move(strategy);
  r.seed = 1;
  r.workers = 2;
  r.options = {{"batch", 128}, {"lr", 0.1}};
  r.examples_per_s = 5810;
  r.wall_s = 41.3;
  r.flops_total = 9'876'543'210'123;
  for (int i = 1; i <= points; ++i) {
    RunRecord::Point p{.step = i, .examples = i * 128};
    p.train_loss = 0.3 + 2.0 / i + 0.05 * std::sin(i * 7.7);
    if (i % 10 == 0) {
      p.test_loss = 0.4 + 2.0 / i;
      p.test_accuracy = 0.9 - 0.5 / i;
    }
    p.lr = 0.1;
    r.history.push_back(p);
  }
  r.per_worker = {{0, "cpu:0", 30, 5, 3, 2, 1, 8.3, 1 << 20}, {1, "cpu:1", 28, 5, 3, 2, 1, 10.3, 1 << 21}};
  r.predicted = {0.01, 2'000'000};
  r.measured = {0.011, 2'097'152};
  run.ops = {{"matmul.cpu", 100, 20, 1'000'000'000'000, 0}, {"relu", 100, 2, 0, 4'000'000'000}};
  return run;
}

void expect_sound(const std::string& html) {
  for (const char* bad :
       {"http:", "https:", "//cdn", "src=", "@import", "url(", ">nan<", ">inf<", "\"nan\"", ">-nan"}) {
    EXPECT_EQ(html.find(bad), std::string::npos) << bad;
  }
  for (const char* tag : {"svg", "div", "g", "figure", "table", "tr", "section", "main", "script", "style", "span"}) {
    EXPECT_EQ(count(html, std::string("<") + tag + " ") + count(html, std::string("<") + tag + ">"),
              count(html, std::string("</") + tag + ">"))
        << tag;
  }
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Report, OneRun) {
  const std::vector<RunReport> runs = {example(200)};
  const std::string html = render_report(runs);
  expect_sound(html);
  EXPECT_NE(html.find("<h1>mlp on fashion-mnist</h1>"), std::string::npos);
  // Loss (drawn for wide and for narrow pages), accuracy, learning rate.
  EXPECT_EQ(count(html, "class=\"plot\""), 4u);
  EXPECT_EQ(count(html, "<polyline class=\"raw\""), 2u);
  EXPECT_EQ(count(html, "<polyline class=\"line\""), 6u);
  EXPECT_EQ(count(html, "class=\"cards\""), 1u);
  for (const char* text :
       {"89.8%", "5810<small>/s", "9.88<small>TFLOP", "matmul.<wbr>cpu", "50.0", "exposed communication"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
}

TEST(Report, TwoRunsShareTheCharts) {
  const std::vector<RunReport> runs = {example(100), example(100, "gpipe")};
  const std::string html = render_report(runs);
  expect_sound(html);
  EXPECT_NE(html.find("<h1>local-greedy vs. gpipe</h1>"), std::string::npos);
  EXPECT_NE(html.find("mlp · fashion-mnist · 2 workers · seed 1"), std::string::npos);
  EXPECT_EQ(count(html, "class=\"plot\""), 4u);  // training loss, test loss, accuracy, learning rate
  EXPECT_EQ(count(html, "<polyline class=\"line\""), 8u);
  EXPECT_EQ(count(html, "<tr class=\"differs\"><th>strategy</th>"), 1u);
}

TEST(Report, TheBetterOneIsMarkedOnlyWhereRunsCanBeCompared) {
  const auto marked = [](const std::function<void(RunRecord&)>& change) {
    std::vector<RunReport> runs = {example(100), example(100, "gpipe")};
    for (RunReport& run : runs) {
      run.record.examples = 12800;
      run.record.metrics = {.test_loss = 0.5, .test_accuracy = 0.8};
    }
    RunRecord& second = runs[1].record;
    second.metrics = {.test_loss = 0.4, .test_accuracy = 0.9};
    second.examples_per_s = 7000;
    second.measured.peak_bytes = 3 << 20;
    second.flops_total = 5'000'000'000'000;
    second.wall_s = 30;
    change(second);
    return count(render_report(runs), "<div class=\"many best\"");
  };
  EXPECT_EQ(marked([](RunRecord&) {}), 6u);
  EXPECT_EQ(marked([](RunRecord& r) { r.examples = 100; }), 4u);   // wall time and compute of other amounts of work
  EXPECT_EQ(marked([](RunRecord& r) { r.model = "other"; }), 2u);  // accuracy and loss remain
  EXPECT_EQ(marked([](RunRecord& r) { r.data = "other"; }), 0u);
  EXPECT_EQ(marked([](RunRecord& r) { r.wall_s = 41.3; }), 5u);  // nobody is better than an equal
}

TEST(Report, ALossIsNamed) {
  RunReport run = example(20);
  EXPECT_NE(render_report(std::vector{run}).find(">Test loss<"), std::string::npos);
  for (RunRecord::Point& p : run.record.history) p.test_loss = kAbsent;
  const std::string html = render_report(std::vector{run});
  EXPECT_EQ(html.find(">Test loss<"), std::string::npos);
  EXPECT_NE(html.find(">Training loss<"), std::string::npos);
}

// Charts of one page have one x axis: what is measured at the end only does not get a range of its own.
TEST(Report, ChartsShareTheirRange) {
  for (const int points : {10, 100, 1000}) {
    const std::string html = render_report(std::vector{example(points)});
    int charts = 0;
    for (std::size_t at = 0; (at = html.find("class=\"plot\"", at)) != std::string::npos; ++at, ++charts) {
      const std::string chart = html.substr(at, html.find("</svg></figure>", at) - at);
      EXPECT_EQ(count(chart, "text-anchor=\"middle\">0</text>"), 1u) << "no origin, with " << points;
    }
    EXPECT_EQ(charts, 4) << points;
  }
}

TEST(Report, EqualRunsGetDifferentNames) {
  const std::vector<RunReport> runs = {example(3), example(3)};
  const std::string html = render_report(runs);
  EXPECT_NE(html.find("run 1 vs. run 2"), std::string::npos);
}

TEST(Report, DegenerateHistories) {
  expect_sound(render_report({}));
  for (const int points : {0, 1, 2, 3, 100000}) {
    const std::vector<RunReport> runs = {example(points)};
    const std::string html = render_report(runs);
    expect_sound(html);
    EXPECT_LT(html.size(), 300000u);
    EXPECT_EQ(html.find("No history was recorded.") != std::string::npos, points == 0);
  }
  const std::vector<RunReport> empty = {RunReport{}, RunReport{}};
  expect_sound(render_report(empty));
  std::vector<RunReport> unordered = {example(30)};
  std::swap(unordered[0].record.history[3], unordered[0].record.history[20]);
  expect_sound(render_report(unordered));
}

TEST(Report, EscapesWhatUsersWrote) {
  const std::string evil = "</script><img onerror='x'>\"&\xff";
  RunReport run = example(30);
  RunRecord& r = run.record;
  r.command = r.model = r.data = r.strategy = r.build.version = r.build.git = r.build.isa = evil;
  r.devices = {evil};
  r.options = {{evil, evil}};
  r.metrics.more = {{evil, 1.0}};
  r.per_worker[0].device = evil;
  run.ops[0].name = evil;
  Trace trace;
  const int lane = trace.lane(0, evil);
  trace.span(trace.intern(evil), trace.intern(evil), 0, 1000, {.step = 1}, lane);
  run.trace = trace.snapshot();
  RunReport titled = run;
  titled.title = evil;
  for (const auto& runs : {std::vector{run}, std::vector{run, titled}}) {
    const std::string html = render_report(runs);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(html.find('\xff'), std::string::npos);
    EXPECT_EQ(count(html, "</script>"), 1u);
    EXPECT_EQ(html.find("onerror='"), std::string::npos);
  }
}

TEST(Report, TimelineShowsAFewTypicalSteps) {
  Trace trace;
  const int compute = trace.lane(0, "compute");
  const int comm = trace.lane(0, "communication");
  for (int step = 0; step < 50; ++step) {
    const std::int64_t at = step * 1'000'000;
    const std::int64_t slow = step == 0 ? 20 : 1;  // the first step warms up
    trace.span("forward", "forward", at, at + slow * 300'000, {.step = step}, compute);
    trace.span("matmul", "op", at + 1000, at + 200'000, {.flops = 5000, .step = step}, compute);
    trace.span("all-reduce", "comm", at + 400'000, at + 800'000, {.bytes = 64, .step = step}, comm);
  }
  RunReport run;
  run.trace = trace.snapshot();
  const std::string html = render_report(std::vector{run});
  expect_sound(html);
  EXPECT_EQ(count(html, "<title>forward · forward"), 3u);
  EXPECT_EQ(count(html, "<title>all-reduce · comm"), 3u);
  EXPECT_EQ(html.find("step 0<"), std::string::npos);

  RunReport stepless;
  Trace plain({.max_events = 2500});
  for (int i = 0; i < 5000; ++i) plain.span("s", {}, i * 1000, i * 1000 + 900);
  stepless.trace = plain.snapshot();
  const std::string html2 = render_report(std::vector{stepless});
  expect_sound(html2);
  EXPECT_NE(html2.find("2500 later events were dropped"), std::string::npos);
}

// No two kinds of work in a timeline look alike, whatever they are called; nor like a run.
TEST(Report, TimelineColorsTellKindsApart) {
  for (const char* unknown : {"", "loss", "sampling"}) {
    Trace trace;
    const int lane = trace.lane(0, "compute");
    const std::string kinds[] = {"step", "input",    "forward",    "backward", "update",
                                 "op",   "evaluate", "checkpoint", unknown};
    std::int64_t at = 0;
    for (const std::string& kind : kinds) {
      trace.span(trace.intern("x"), trace.intern(kind), at, at + 1000, {.step = 1}, lane);
      at += 2000;
    }
    RunReport run;
    run.trace = trace.snapshot();
    const std::string html = render_report(std::vector{run, run});
    const std::string section =
        html.substr(html.find("<h2>Timeline"), html.find("<h2>Configuration") - html.find("<h2>Timeline"));
    const std::string legend = section.substr(0, section.find("</div>"));
    std::set<std::string> colors;
    for (std::size_t i = 0; (i = legend.find("<i class=\"", i)) != std::string::npos; ++i) {
      colors.insert(legend.substr(i, legend.find('>', i) - i));
    }
    EXPECT_EQ(colors.size(), std::size(kinds)) << unknown;
    EXPECT_EQ(count(legend, "<i "), std::size(kinds)) << "the run's own colour is not in the card";
  }
}

TEST(OpTimes, LeavesOutWhatIsInside) {
  Trace trace;
  const int lane = trace.lane(0, "l");
  const int other = trace.lane(0, "m");
  trace.span("outer", "op", 0, 1000, {.flops = 7}, lane);
  trace.span("inner", "op", 100, 400, {.bytes = 3, .flops = 5}, lane);
  trace.span("inner", "op", 500, 700, {}, lane);
  trace.span("inner", "op", 500, 700, {}, other);
  trace.span("phase", "forward", 0, 5000, {}, lane);
  const std::vector<OpTime> ops = op_times(trace.snapshot(), "op");
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].name, "inner");
  EXPECT_EQ(ops[0].calls, 3);
  EXPECT_NEAR(ops[0].seconds, 700e-9, 1e-15);
  EXPECT_EQ(ops[0].flops, 5);
  EXPECT_NEAR(ops[1].seconds, 500e-9, 1e-15);
  EXPECT_EQ(op_times(trace.snapshot(), "").size(), 3u);
}

}  // namespace
}  // namespace lamina::tools
