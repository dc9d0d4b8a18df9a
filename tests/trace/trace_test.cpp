#include "lamina/core/trace.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <vector>

namespace lamina {
namespace {

using Json = nlohmann::json;

Json events(const TraceSnapshot& trace, const std::string& phase) {
  const Json all = Json::parse(to_chrome_json(trace));
  Json out = Json::array();
  for (const Json& e : all["traceEvents"]) {
    if (e["ph"] == phase) out.push_back(e);
  }
  return out;
}

TEST(Trace, SpansNestAndCarryTheirArguments) {
  Trace trace;
  trace.set_thread_lane(trace.lane(3, "compute"));
  {
    TraceSpan outer(&trace, "step", "step", {.step = 7});
    TraceSpan inner(&trace, "matmul", "op");
    inner.args().flops = 1000;
    inner.args().bytes = 64;
  }
  const TraceSnapshot snapshot = trace.snapshot();
  ASSERT_EQ(snapshot.spans.size(), 2u);
  const auto& outer = snapshot.spans[0];
  const auto& inner = snapshot.spans[1];
  EXPECT_EQ(snapshot.names[outer.name], "step");
  EXPECT_EQ(snapshot.names[inner.category], "op");
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_GE(outer.end_ns, inner.end_ns);
  EXPECT_EQ(outer.lane, inner.lane);

  const Json x = events(snapshot, "X");
  ASSERT_EQ(x.size(), 2u);
  EXPECT_EQ(x[0]["pid"], 3);
  EXPECT_EQ(x[0]["args"], Json({{"step", 7}}));
  EXPECT_EQ(x[1]["args"], Json({{"flops", 1000}, {"bytes", 64}}));
  EXPECT_EQ(x[0]["ts"], 0.0);
  EXPECT_LE(x[1]["ts"].get<double>() + x[1]["dur"].get<double>(), x[0]["dur"].get<double>() + 1e-6);
  std::vector<std::string> names;
  for (const Json& m : events(snapshot, "M")) {
    if (m["name"] == "process_name" || m["name"] == "thread_name") names.push_back(m["args"]["name"]);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"rank 3", "compute"}));
}

TEST(Trace, TimesAreMicrosecondsWithDecimals) {
  Trace trace;
  const int lane = trace.lane(0, "l");
  trace.span("a", {}, 1'000'000, 1'001'234, {}, lane);
  trace.span("b", {}, 1'000'007, 1'000'007, {}, lane);
  trace.span("backwards", {}, 1'000'500, 1'000'400, {}, lane);
  const std::string text = to_chrome_json(trace.snapshot());
  EXPECT_NE(text.find("\"ts\":0.000,\"dur\":1.234"), std::string::npos) << text;
  EXPECT_NE(text.find("\"ts\":0.007,\"dur\":0.000"), std::string::npos) << text;
  EXPECT_NE(text.find("\"ts\":0.500,\"dur\":0.000"), std::string::npos) << text;
}

TEST(Trace, NullRecordsNothing) {
  TraceSpan span(nullptr, "a", "b", {.bytes = 1});
  span.args().flops = 2;
  span.end();
  span.end();
}

TEST(Trace, SpanEndsOnce) {
  Trace trace;
  {
    TraceSpan span(&trace, "a");
    span.end();
    span.end();
  }
  EXPECT_EQ(trace.events(), 1);
}

TEST(Trace, BoundedAndCountsWhatItDrops) {
  Trace trace({.max_events = 100});
  for (int i = 0; i < 250; ++i) trace.span("s", {}, i, i + 1);
  EXPECT_EQ(trace.events(), 100);
  EXPECT_EQ(trace.dropped(), 150);
  const TraceSnapshot snapshot = trace.snapshot();
  EXPECT_EQ(snapshot.spans.size(), 100u);
  EXPECT_EQ(snapshot.spans.back().start_ns, 99);  // the earliest are kept
  EXPECT_EQ(Json::parse(to_chrome_json(snapshot))["otherData"]["dropped_events"], 150);

  Trace none({.max_events = 0});
  none.counter("c", 1);
  EXPECT_EQ(none.events(), 0);
  EXPECT_EQ(none.dropped(), 1);
}

TEST(Trace, UnknownLaneIsDroppedNotRead) {
  Trace trace;
  trace.span("s", {}, 0, 1, {}, 77);
  const TraceSnapshot snapshot = trace.snapshot();
  EXPECT_TRUE(snapshot.spans.empty());
  EXPECT_EQ(snapshot.dropped, 1);
}

TEST(Trace, OddNamesStayValidJson) {
  Trace trace;
  const std::string odd = std::string("q\"uo\\te\n\t\x01\x7f") + "\xff\xc3(\xe2\x82" + std::string(1, '\0') + "é✓";
  const TraceName name = trace.intern(odd);
  EXPECT_EQ(trace.intern(odd).text().data(), name.text().data());
  trace.set_thread_lane(trace.lane(0, odd));
  trace.span(name, name, 0, 1);
  trace.counter(name, 2.5);
  trace.counter("nan", std::numeric_limits<double>::quiet_NaN());
  trace.counter("inf", std::numeric_limits<double>::infinity());
  const Json x = events(trace.snapshot(), "X");
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(x[0]["name"].get<std::string>(), std::string("q\"uo\\te\n\t\x01\x7f") + replacement + replacement + "(" +
                                                 replacement + replacement + std::string(1, '\0') + "é✓");
  const Json c = events(trace.snapshot(), "C");
  ASSERT_EQ(c.size(), 1u);
  EXPECT_EQ(c[0]["args"]["value"], 2.5);
}

TEST(Trace, EmptyTraceIsValid) {
  Trace trace;
  EXPECT_TRUE(Json::parse(to_chrome_json(trace.snapshot()))["traceEvents"].empty());
  std::ostringstream out;
  write_chrome_json(out, trace.snapshot());
  EXPECT_EQ(out.str(), to_chrome_json(trace.snapshot()));
}

TEST(Trace, EightThreadsWhileItIsRead) {
  constexpr int kThreads = 8;
  constexpr int kSpans = 5000;
  Trace trace;
  std::atomic<bool> stop{false};
  std::latch all_done(kThreads);
  std::thread reader([&] {
    while (!stop.load()) {
      const TraceSnapshot s = trace.snapshot();
      for (const auto& span : s.spans) ASSERT_LE(span.start_ns, span.end_ns);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      if (t % 2 == 0) trace.set_thread_lane(trace.lane(t, "compute"));
      for (int i = 0; i < kSpans; ++i) {
        TraceSpan span(&trace, "work", "op", {.step = i});
        if (i % 100 == 0) trace.counter("bytes", i);
        if (i % 1000 == 0) trace.intern("name" + std::to_string(i));
      }
      all_done.arrive_and_wait();  // a thread that ended would leave its lane to another
    });
  }
  for (std::thread& t : threads) t.join();
  stop.store(true);
  reader.join();
  const TraceSnapshot s = trace.snapshot();
  EXPECT_EQ(s.spans.size(), std::size_t{kThreads} * kSpans);
  EXPECT_EQ(s.counters.size(), std::size_t{kThreads} * kSpans / 100);
  EXPECT_EQ(s.lanes.size(), std::size_t{kThreads});
  EXPECT_EQ(s.dropped, 0);
}

TEST(Trace, ThreadsThatEndLeaveTheirBufferToOthers) {
  Trace trace;
  for (int i = 0; i < 20; ++i) std::thread([&] { TraceSpan span(&trace, "short"); }).join();
  EXPECT_EQ(trace.events(), 20);
  EXPECT_EQ(trace.snapshot().lanes.size(), 1u);  // one after the other: one lane
}

TEST(Trace, ManyTracesOnOneThread) {
  // The next one may take the place in memory of the last: what the thread remembers must not be mistaken for it.
  for (int i = 0; i < 50; ++i) {
    auto a = std::make_unique<Trace>();
    auto b = std::make_unique<Trace>();
    TraceSpan(a.get(), "a").end();
    TraceSpan(b.get(), "b").end();
    TraceSpan(a.get(), "a").end();
    EXPECT_EQ(a->events(), 2);
    EXPECT_EQ(b->events(), 1);
  }
}

TEST(Trace, SetThreadLaneGivesBackTheOldOne) {
  Trace trace;
  const int a = trace.lane(0, "a");
  const int b = trace.lane(0, "b");
  EXPECT_EQ(trace.lane(0, "a"), a);
  EXPECT_NE(trace.lane(1, "a"), a);
  EXPECT_EQ(trace.set_thread_lane(a), Trace::kThreadLane);
  EXPECT_EQ(trace.set_thread_lane(b), a);
  EXPECT_EQ(trace.set_thread_lane(Trace::kThreadLane), b);
  trace.counter("c", 1);
  EXPECT_EQ(trace.snapshot().lanes.back().name, "thread 0");
}

TEST(TraceSnapshot, AppendsAnotherRankOnThisClock) {
  Trace here;
  Trace there({.rank = 1});
  here.span("a", "x", 100, 200, {}, here.lane(0, "compute"));
  there.span("b", "x", 10, 20, {}, there.lane(1, "compute"));
  there.span("a", "y", 120, 130, {}, there.lane(1, "compute"));
  there.counter("c", 1);
  TraceSnapshot all = here.snapshot();
  all.append(there.snapshot(), 50);
  ASSERT_EQ(all.spans.size(), 3u);
  EXPECT_EQ(all.names[all.spans[0].name], "b");
  EXPECT_EQ(all.spans[0].start_ns, 60);
  EXPECT_EQ(all.lanes[static_cast<std::size_t>(all.spans[0].lane)].rank, 1);
  EXPECT_EQ(all.names[all.spans[2].name], "a");
  EXPECT_EQ(all.spans[2].end_ns, 180);
  EXPECT_EQ(all.counters.size(), 1u);
}

TEST(Utf8, OnlyWellFormedSequencesPass) {
  for (const char* good : {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(detail::utf8_sequence(good), std::string_view(good).size());
  }
  for (const char* bad : {"", "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xff"}) {
    EXPECT_EQ(detail::utf8_sequence(bad), 0u) << bad;
  }
}

}  // namespace
}  // namespace lamina
