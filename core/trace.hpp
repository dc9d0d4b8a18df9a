// Trace: what ran when, on which lane of which rank. Spans and counters go to per-thread buffers without a lock and
// without an allocation per event; a null Trace* costs one branch. A trace is an object: there is no global one.
//
//   Trace trace;                                       // or none: every TraceSpan takes a null pointer
//   trace.set_thread_lane(trace.lane(rank, "compute"));
//   { TraceSpan span(&trace, "forward", "forward", {.step = 7}); ... }
//   write_chrome_json(file, trace.snapshot());         // opens in Perfetto
#pragma once

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lamina {

/// Name or category of an event: text that outlives the trace. A string literal, of_static(), or Trace::intern().
class TraceName {
 public:
  constexpr TraceName() noexcept = default;
  consteval TraceName(const char* literal) : text_(literal) {}  // NOLINT: implicit on purpose
  /// For text the caller knows to be static, such as an op record's name.
  static constexpr TraceName of_static(std::string_view text) noexcept {
    TraceName name;
    name.text_ = text;
    return name;
  }
  constexpr std::string_view text() const noexcept { return text_; }

 private:
  std::string_view text_;
};

/// What an event may say about itself; negative means absent.
struct TraceArgs {
  std::int64_t bytes = -1;
  std::int64_t flops = -1;
  std::int64_t step = -1;
};

/// Everything recorded, as plain data that outlives the trace and that ranks can send to each other.
struct TraceSnapshot {
  struct Lane {
    int rank = 0;
    std::string name = {};
  };
  struct Span {
    std::uint32_t name = 0;      ///< index into names
    std::uint32_t category = 0;  ///< index into names
    std::int32_t lane = 0;       ///< index into lanes
    std::int64_t start_ns = 0;   ///< steady clock
    std::int64_t end_ns = 0;     ///< >= start_ns
    TraceArgs args = {};
  };
  struct Counter {
    std::uint32_t name = 0;
    std::int32_t lane = 0;  ///< its rank owns the counter
    std::int64_t time_ns = 0;
    double value = 0;
  };

  std::vector<std::string> names = {};
  std::vector<Lane> lanes = {};
  std::vector<Span> spans = {};        ///< by start; a span comes before those it encloses
  std::vector<Counter> counters = {};  ///< by time
  std::int64_t dropped = 0;            ///< events that did not fit under max_events

  /// Index of the name, added when new. Linear in the number of names.
  std::uint32_t name_index(std::string_view name);
  /// Adds another rank's events, `offset_ns` later: how far this clock is ahead of the other's.
  void append(const TraceSnapshot& other, std::int64_t offset_ns = 0);
};

/// All members may be called from any thread; the destructor only when nobody records any more.
class Trace {
 public:
  struct Options {
    std::int64_t max_events = 1 << 20;  ///< of 64 bytes each; later ones are dropped and counted
    int rank = 0;                       ///< of threads that have not been given a lane
  };
  static constexpr int kThreadLane = -1;

  Trace();
  explicit Trace(const Options& options);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Nanoseconds on the steady clock.
  static std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// A name made at run time, kept once. Takes a lock: not for the hot path.
  TraceName intern(std::string_view text);
  /// The lane of that rank and name, made when new. Takes a lock.
  int lane(int rank, std::string_view name);
  /// The calling thread's events go to this lane from now on; kThreadLane gives it back its own ("thread 3").
  /// Returns the lane it had.
  int set_thread_lane(int lane);

  /// Records a span that has ended. Never throws; drops the event when the trace is full.
  void span(TraceName name, TraceName category, std::int64_t start_ns, std::int64_t end_ns, const TraceArgs& args = {},
            int lane = kThreadLane) noexcept;
  /// Records a counter's new value. Values that are not finite are kept but not written to JSON.
  void counter(TraceName name, double value, int lane = kThreadLane) noexcept;

  std::int64_t events() const;
  std::int64_t dropped() const;
  /// A copy of what has been recorded so far; others may go on recording.
  TraceSnapshot snapshot() const;

 private:
  struct State;
  struct Event;
  struct Chunk;
  struct Slot;
  struct Threads;
  Slot* slot() noexcept;
  Slot* find_slot();
  void push(const Event& event) noexcept;

  const std::uint64_t id_;  // never used twice in a process: what threads remember of a trace cannot go stale
  const std::unique_ptr<State> state_;
};

/// Records the time from its construction to its end. Belongs to one thread.
class TraceSpan {
 public:
  explicit TraceSpan(Trace* trace, TraceName name, TraceName category = {}, const TraceArgs& args = {}) noexcept
      : trace_(trace) {
    if (trace == nullptr) [[likely]] {
      return;
    }
    name_ = name;
    category_ = category;
    args_ = args;
    start_ = Trace::now();
  }
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// What became known meanwhile. Has no effect on a null trace.
  TraceArgs& args() noexcept { return args_; }
  /// Ends the span before its scope does; further calls do nothing.
  void end() noexcept {
    if (trace_ == nullptr) [[likely]] {
      return;
    }
    trace_->span(name_, category_, start_, Trace::now(), args_);
    trace_ = nullptr;
  }

 private:
  Trace* trace_;
  TraceName name_;
  TraceName category_;
  std::int64_t start_ = 0;
  TraceArgs args_;
};

/// Chrome's trace format: a process a rank, a thread a lane, times in microseconds since the earliest event. Always
/// valid JSON, whatever the names hold. Perfetto and chrome://tracing open it.
void write_chrome_json(std::ostream& out, const TraceSnapshot& trace);
std::string to_chrome_json(const TraceSnapshot& trace);

namespace detail {
/// Length of the well-formed UTF-8 sequence that `text` starts with; 0 when there is none.
std::size_t utf8_sequence(std::string_view text) noexcept;
/// The text with every byte outside well-formed UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);
/// Appends the text as a JSON string with its quotes.
void append_json_string(std::string& out, std::string_view text);
}  // namespace detail

}  // namespace lamina
