#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "lamina/tools/chart/axis.hpp"
#include "lamina/tools/chart/bars.hpp"
#include "lamina/tools/chart/line_chart.hpp"
#include "lamina/tools/chart/timeline.hpp"

namespace lamina::tools {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

// Every coordinate a number: no nan, no inf, nothing in exponent form.
void expect_clean(const std::string& svg) {
  std::string text = svg;
  for (std::size_t at = 0; (at = text.find("data-hover=\"", at)) != std::string::npos;) {
    text.erase(at, text.find('"', at + 12) + 1 - at);
  }
  EXPECT_EQ(text.find("nan"), std::string::npos) << svg;
  EXPECT_EQ(text.find("inf"), std::string::npos) << svg;
  EXPECT_EQ(text.find("e+"), std::string::npos) << svg;
}

Series line(std::vector<double> y) {
  Series s{.name = "s", .x = {}, .y = std::move(y)};
  for (std::size_t i = 0; i < s.y.size(); ++i) s.x.push_back(static_cast<double>(i));
  return s;
}

LineChart chart(Series s) {
  LineChart c;
  c.title = "t";
  c.x_label = "x";
  c.series = {std::move(s)};
  return c;
}

TEST(Axis, TicksAreRoundAndDistinctForAnyRange) {
  const std::pair<double, double> ranges[] = {{0, 1},         {0.123, 0.987},  {0, 0},         {5, 5},
                                              {-3, 7},        {1e-12, 3e-12},  {1e12, 3e12},   {1e6, 1e6 + 1e-9},
                                              {0.1, 0.10001}, {-1e140, 1e140}, {0, 1e-300},    {-0.5, -0.5},
                                              {12345, 12346}, {0, 99999},      {1e-5, 1.2e-5}, {0.9999999, 1}};
  for (const auto& [lo, hi] : ranges) {
    for (const NumberFormat format : {NumberFormat::plain, NumberFormat::percent, NumberFormat::count}) {
      for (const bool outward : {true, false}) {
        const Axis axis = Axis::make(lo, hi, 5, format, false, outward);
        SCOPED_TRACE(testing::Message() << lo << " " << hi << " " << outward);
        ASSERT_LT(axis.lo, axis.hi);
        EXPECT_LE(axis.lo, lo + (axis.hi - axis.lo) * 1e-5);
        EXPECT_GE(axis.hi, hi - (axis.hi - axis.lo) * 1e-5);
        ASSERT_EQ(axis.ticks.size(), axis.labels.size());
        EXPECT_LE(axis.ticks.size(), 12u);
        EXPECT_GE(axis.ticks.size(), outward ? 2u : 0u);
        EXPECT_EQ(std::set(axis.labels.begin(), axis.labels.end()).size(), axis.labels.size());
      }
    }
  }
  EXPECT_EQ(Axis::make(0, 240000, 5, NumberFormat::count).labels,
            (std::vector<std::string>{"0", "50k", "100k", "150k", "200k", "250k"}));
  EXPECT_EQ(Axis::make(0.71, 0.893, 4, NumberFormat::percent).labels,
            (std::vector<std::string>{"70%", "75%", "80%", "85%", "90%"}));
  EXPECT_EQ(Axis::make(0, 2.3, 5, NumberFormat::plain).labels,
            (std::vector<std::string>{"0", "0.5", "1.0", "1.5", "2.0", "2.5"}));
}

TEST(Axis, LogTicks) {
  const Axis axis = Axis::make(0.002, 30, 5, NumberFormat::plain, true);
  EXPECT_EQ(axis.labels, (std::vector<std::string>{"0.001", "0.01", "0.1", "1", "10", "100"}));
  EXPECT_NEAR(axis.position(0.1), 0.4, 1e-12);
  const std::pair<double, double> ranges[] = {{1e-300, 1e140}, {1, 1}, {3, 4}, {1e-9, 1e-6}, {5e-5, 0.9}};
  for (const auto& [lo, hi] : ranges) {
    const Axis a = Axis::make(lo, hi, 5, NumberFormat::plain, true);
    EXPECT_LE(a.lo, lo);
    EXPECT_GE(a.hi, hi);
    EXPECT_GE(a.ticks.size(), 2u);
    EXPECT_LE(a.ticks.size(), 14u);
    EXPECT_EQ(std::set(a.labels.begin(), a.labels.end()).size(), a.labels.size());
  }
}

TEST(LineChart, OnePolylineASeriesTwoWhenSmoothed) {
  LineChart c = chart(line({3, 2, 1}));
  EXPECT_EQ(count(line_chart(c), "<polyline"), 1u);
  std::vector<double> noisy;
  for (int i = 0; i < 1000; ++i) noisy.push_back(1.0 + 0.5 * std::sin(i * 12.3));
  c.series = {line(noisy), line({1, 2})};
  c.series[0].smooth = true;
  const std::string svg = line_chart(c);
  EXPECT_EQ(count(svg, "<polyline class=\"raw\""), 1u);
  EXPECT_EQ(count(svg, "<polyline class=\"line\""), 2u);
  expect_clean(svg);
}

TEST(LineChart, DegenerateSeries) {
  EXPECT_FALSE(has_values(chart(line({}))));
  EXPECT_FALSE(has_values(chart(line({kNan, kNan}))));
  for (const auto& values : std::vector<std::vector<double>>{
           {},
           {1},
           {1, 1},
           {0},
           {0, 0, 0},
           {kNan},
           {kNan, 2},
           {1e308, -1e308},
           {1e-320},
           {1e140, -1e140},
           {std::numeric_limits<double>::infinity(), 1, -std::numeric_limits<double>::infinity()}}) {
    const std::string svg = line_chart(chart(line(values)));
    expect_clean(svg);
    EXPECT_EQ(count(svg, "<figure"), count(svg, "</figure>"));
    EXPECT_EQ(count(svg, "<svg"), count(svg, "</svg>"));
  }
  EXPECT_EQ(count(line_chart(chart(line({1}))), "<circle class=\"line\""), 1u);
  Series ragged{.name = "r", .x = {1, 2, 3}, .y = {1}};
  expect_clean(line_chart(chart(ragged)));
}

TEST(LineChart, GapsCutTheLineLoneMissingValuesDoNot) {
  EXPECT_EQ(count(line_chart(chart(line({5, 4, kNan, 3, 2, 1, 1}))), "<polyline"), 1u);
  EXPECT_EQ(count(line_chart(chart(line({5, 4, 4, kNan, kNan, kNan, 3, 2, 2}))), "<polyline"), 2u);
  std::vector<double> sparse(1001, kNan);  // measured every hundredth step
  for (std::size_t i = 0; i < sparse.size(); i += 100) sparse[i] = 1;
  EXPECT_EQ(count(line_chart(chart(line(sparse))), "<polyline"), 1u);
}

TEST(LineChart, LogScaleBeyondTwoDecades) {
  EXPECT_EQ(line_chart(chart(line({50, 10, 1}))).find("log scale"), std::string::npos);
  EXPECT_NE(line_chart(chart(line({500, 10, 1}))).find("log scale"), std::string::npos);
  EXPECT_EQ(line_chart(chart(line({500, 1, -1}))).find("log scale"), std::string::npos);
  const std::string svg = line_chart(chart(line({500, 0, 1, 2})));  // zero has no logarithm: a missing value
  EXPECT_NE(svg.find("log scale"), std::string::npos);
  expect_clean(svg);
}

TEST(LineChart, ManyPointsStaySmallAndKeepTheirExtremes) {
  std::vector<double> values;
  for (int i = 0; i < 100000; ++i) values.push_back(1 + 0.1 * std::sin(i));
  values[54321] = 3;
  Series s = line(values);
  const std::string plain = line_chart(chart(s));
  EXPECT_LT(plain.size(), 60000u);
  EXPECT_NE(plain.find(",10 "), std::string::npos) << "the highest point is at the top of the frame";
  s.smooth = true;
  EXPECT_LT(line_chart(chart(s)).size(), 80000u);
}

TEST(LineChart, EscapesItsTexts) {
  LineChart c = chart(line({1, 2}));
  c.title = c.x_label = c.note = c.series[0].name = "<script>\"'&\x01\xff";
  c.legend = true;
  const std::string svg = line_chart(c);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_EQ(svg.find('\xff'), std::string::npos);
}

TEST(Smoothed, KeepsConstantsAndLength) {
  EXPECT_EQ(smoothed({}, 10), std::vector<double>{});
  EXPECT_EQ(smoothed({1, 2, 3}, 1), (std::vector<double>{1, 2, 3}));
  for (const double v : smoothed(std::vector<double>(100, 2.5), 20)) EXPECT_NEAR(v, 2.5, 1e-12);
  const auto gap = smoothed({1, 1, kNan, 9, 9}, 8);
  EXPECT_NEAR(gap[1], 1, 1e-12);
  EXPECT_TRUE(std::isnan(gap[2]));
  EXPECT_NEAR(gap[3], 9, 1e-12);
}

TEST(StackedBars, PartsFillTheLongestRow) {
  const std::string svg = stacked_bars({{.label = "<a>", .parts = {{1, 0, "x", "1 s"}, {3, 1, "y", "3 s"}}},
                                        {.label = "b", .parts = {{kNan, 0, "x", "-"}, {-1, 1, "y", "-"}}}});
  EXPECT_EQ(count(svg, "<rect"), 2u);
  EXPECT_NE(svg.find("x=\"250\""), std::string::npos);
  EXPECT_EQ(svg.find("<a>"), std::string::npos);
  expect_clean(svg);
  expect_clean(stacked_bars({}));
}

TEST(Timeline, MergesWhatIsNarrowerThanAPixel) {
  Timeline t;
  t.lanes = {{"rank 0", "compute"}};
  for (int i = 0; i < 20000; ++i) t.bars.push_back({0, 0, i * 5e-5, i * 5e-5 + 4e-5, 0, "op", "op"});
  t.bars.push_back({0, 1, 0.1, 0.6, 1, "a <wide> one", "tip & tap"});
  t.bars.push_back({0, 9, 0.1, 0.6, 1, "too deep", ""});
  const std::string svg = timeline(t);
  EXPECT_LT(count(svg, "<rect"), 1500u);
  EXPECT_NE(svg.find("a &lt;wide&gt; one"), std::string::npos);
  EXPECT_EQ(svg.find("too deep"), std::string::npos);
  expect_clean(svg);
  expect_clean(timeline(Timeline{}));
}

}  // namespace
}  // namespace lamina::tools
