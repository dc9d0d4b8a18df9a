#include "lamina/core/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <ostream>
#include <set>
#include <unordered_map>

namespace lamina {

namespace {
constexpr std::int64_t kFirstChunk = 64;
constexpr std::int64_t kLargestChunk = 4096;

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}
}  // namespace

// One cache line. A counter keeps its value's bits in `bytes`.
struct Trace::Event {
  const char* name;
  const char* category;
  std::int64_t start;
  std::int64_t end;
  std::int64_t bytes;
  std::int64_t flops;
  std::int64_t step;
  std::int32_t lane;
  std::uint16_t name_size;
  std::uint8_t category_size;
  bool is_counter;
};

// Written by one thread, read by any: an event is there once `count` covers it.
struct Trace::Chunk {
  std::unique_ptr<Event[]> events;
  std::int64_t capacity = 0;
  std::atomic<std::int64_t> count{0};
  std::atomic<Chunk*> next{nullptr};
};

// One thread's buffer. Threads hold it too, so that a thread that ends can give it back; the events are the trace's.
struct Trace::Slot {
  std::atomic<bool> taken{true};
  std::atomic<bool> orphaned{false};  // the trace is gone
  std::atomic<std::int64_t> dropped{0};
  std::atomic<Chunk*> head{nullptr};
  // Below: only for the thread that has taken the slot.
  Chunk* tail = nullptr;
  int lane = kThreadLane;
  int own_lane = kThreadLane;
};

struct Trace::State {
  explicit State(const Options& given) : options(given), budget(std::max<std::int64_t>(given.max_events, 0)) {}

  const Options options;
  std::atomic<std::int64_t> budget;   // events no chunk has claimed yet
  std::atomic<std::int64_t> lost{0};  // dropped without a slot to count them in

  mutable std::mutex mutex;
  std::vector<std::shared_ptr<Slot>> slots;
  std::vector<TraceSnapshot::Lane> lanes;
  std::map<std::pair<int, std::string>, int> lane_ids;
  std::set<std::string, std::less<>> names;
  int threads = 0;

  std::int64_t claim(std::int64_t want) noexcept {
    std::int64_t left = budget.load(std::memory_order_relaxed);
    while (left > 0) {
      const std::int64_t take = std::min(left, want);
      if (budget.compare_exchange_weak(left, left - take, std::memory_order_relaxed)) return take;
    }
    return 0;
  }

  int lane_locked(int rank, std::string_view name) {
    const auto [place, added] = lane_ids.try_emplace({rank, std::string(name)}, static_cast<int>(lanes.size()));
    if (added) lanes.push_back({rank, std::string(name)});
    return place->second;
  }
};

// What a thread remembers: its slot of every living trace it recorded to, the latest one without a search.
struct Trace::Threads {
  struct Latest {
    std::uint64_t id = 0;
    Slot* slot = nullptr;
    bool ended = false;
  };
  struct Known {
    std::uint64_t id;
    std::shared_ptr<Slot> slot;
  };
  struct List {
    std::vector<Known> known;
    ~List() {
      latest = {.ended = true};
      for (Known& k : known) k.slot->taken.store(false, std::memory_order_release);
    }
  };
  static thread_local constinit Latest latest;  // no guard and no destructor: usable while a thread ends
  static List& list() {
    static thread_local List threads;
    return threads;
  }
};
thread_local constinit Trace::Threads::Latest Trace::Threads::latest;

Trace::Trace() : Trace(Options{}) {}
Trace::Trace(const Options& options) : id_(next_id()), state_(std::make_unique<State>(options)) {}

Trace::~Trace() {
  for (const std::shared_ptr<Slot>& slot : state_->slots) {
    Chunk* chunk = slot->head.load(std::memory_order_acquire);
    while (chunk != nullptr) {
      Chunk* next = chunk->next.load(std::memory_order_acquire);
      delete chunk;
      chunk = next;
    }
    slot->orphaned.store(true, std::memory_order_release);
  }
}

Trace::Slot* Trace::slot() noexcept {
  const Threads::Latest& latest = Threads::latest;
  if (latest.id == id_) [[likely]] {
    return latest.slot;
  }
  if (latest.ended) return nullptr;
  try {
    return find_slot();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

Trace::Slot* Trace::find_slot() {
  auto& known = Threads::list().known;
  for (const auto& k : known) {
    if (k.id != id_) continue;
    Threads::latest = {id_, k.slot.get(), false};
    return k.slot.get();
  }
  std::erase_if(known, [](const auto& k) { return k.slot->orphaned.load(std::memory_order_acquire); });
  known.reserve(known.size() + 1);

  std::lock_guard lock(state_->mutex);
  std::shared_ptr<Slot> mine;
  for (const std::shared_ptr<Slot>& slot : state_->slots) {  // a thread that ended leaves its buffer to a new one
    bool taken = false;
    if (slot->taken.compare_exchange_strong(taken, true, std::memory_order_acquire)) {
      mine = slot;
      mine->lane = mine->own_lane;
      break;
    }
  }
  if (!mine) {
    mine = std::make_shared<Slot>();
    state_->slots.push_back(mine);
  }
  known.push_back({id_, mine});
  Threads::latest = {id_, mine.get(), false};
  return mine.get();
}

TraceName Trace::intern(std::string_view text) {
  std::lock_guard lock(state_->mutex);
  auto place = state_->names.find(text);
  if (place == state_->names.end()) place = state_->names.emplace(text).first;
  return TraceName::of_static(*place);
}

int Trace::lane(int rank, std::string_view name) {
  std::lock_guard lock(state_->mutex);
  return state_->lane_locked(rank, name);
}

int Trace::set_thread_lane(int lane) {
  Slot* mine = slot();
  if (mine == nullptr) return kThreadLane;
  const int before = mine->lane;
  mine->lane = lane == kThreadLane ? mine->own_lane : lane;
  return before;
}

void Trace::push(const Event& event) noexcept {
  Slot* mine = slot();
  if (mine == nullptr) {
    state_->lost.fetch_add(1, std::memory_order_relaxed);  // the thread is ending, or memory ran out
    return;
  }
  Chunk* chunk = mine->tail;
  std::int64_t at = chunk == nullptr ? 0 : chunk->count.load(std::memory_order_relaxed);
  if (chunk == nullptr || at == chunk->capacity) [[unlikely]] {
    const std::int64_t want = chunk == nullptr ? kFirstChunk : std::min(2 * chunk->capacity, kLargestChunk);
    const std::int64_t capacity = state_->claim(want);
    std::unique_ptr<Chunk> fresh(capacity == 0 ? nullptr : new (std::nothrow) Chunk);
    if (fresh) fresh->events.reset(new (std::nothrow) Event[static_cast<std::size_t>(capacity)]);
    if (!fresh || !fresh->events) {
      state_->budget.fetch_add(capacity, std::memory_order_relaxed);
      mine->dropped.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    fresh->capacity = capacity;
    (chunk == nullptr ? mine->head : chunk->next).store(fresh.get(), std::memory_order_release);
    mine->tail = chunk = fresh.release();
    at = 0;
  }
  Event& place = chunk->events[static_cast<std::size_t>(at)];
  place = event;
  if (event.lane == kThreadLane) {
    if (mine->lane == kThreadLane) [[unlikely]] {
      try {
        std::lock_guard lock(state_->mutex);
        mine->own_lane = state_->lane_locked(state_->options.rank, fmt::format("thread {}", state_->threads));
        ++state_->threads;
      } catch (const std::bad_alloc&) {
        mine->dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
      mine->lane = mine->own_lane;
    }
    place.lane = mine->lane;
  }
  chunk->count.store(at + 1, std::memory_order_release);
}

void Trace::span(TraceName name, TraceName category, std::int64_t start_ns, std::int64_t end_ns, const TraceArgs& args,
                 int lane) noexcept {
  push({.name = name.text().data(),
        .category = category.text().data(),
        .start = start_ns,
        .end = std::max(start_ns, end_ns),
        .bytes = args.bytes,
        .flops = args.flops,
        .step = args.step,
        .lane = lane,
        .name_size = static_cast<std::uint16_t>(std::min<std::size_t>(name.text().size(), 0xffff)),
        .category_size = static_cast<std::uint8_t>(std::min<std::size_t>(category.text().size(), 0xff)),
        .is_counter = false});
}

void Trace::counter(TraceName name, double value, int lane) noexcept {
  const std::int64_t time = now();
  push({.name = name.text().data(),
        .category = nullptr,
        .start = time,
        .end = time,
        .bytes = std::bit_cast<std::int64_t>(value),
        .flops = -1,
        .step = -1,
        .lane = lane,
        .name_size = static_cast<std::uint16_t>(std::min<std::size_t>(name.text().size(), 0xffff)),
        .category_size = 0,
        .is_counter = true});
}

std::int64_t Trace::events() const {
  std::lock_guard lock(state_->mutex);
  std::int64_t total = 0;
  for (const std::shared_ptr<Slot>& slot : state_->slots) {
    for (Chunk* c = slot->head.load(std::memory_order_acquire); c; c = c->next.load(std::memory_order_acquire)) {
      total += c->count.load(std::memory_order_acquire);
    }
  }
  return total;
}

std::int64_t Trace::dropped() const {
  std::lock_guard lock(state_->mutex);
  std::int64_t total = state_->lost.load(std::memory_order_relaxed);
  for (const std::shared_ptr<Slot>& slot : state_->slots) total += slot->dropped.load(std::memory_order_relaxed);
  return total;
}

namespace {
void sort(TraceSnapshot& trace) {
  std::ranges::stable_sort(trace.spans, [](const auto& a, const auto& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::ranges::stable_sort(trace.counters, {}, &TraceSnapshot::Counter::time_ns);
}
}  // namespace

TraceSnapshot Trace::snapshot() const {
  TraceSnapshot out;
  std::unordered_map<std::string_view, std::uint32_t> names;
  const auto index = [&](const char* data, std::size_t size) {
    const auto [place, added] =
        names.try_emplace(std::string_view(data, size), static_cast<std::uint32_t>(out.names.size()));
    if (added) out.names.emplace_back(place->first);
    return place->second;
  };
  std::lock_guard lock(state_->mutex);
  out.lanes = state_->lanes;  // making a lane takes the lock: every event's lane is there
  out.dropped = state_->lost.load(std::memory_order_relaxed);
  for (const std::shared_ptr<Slot>& slot : state_->slots) {
    out.dropped += slot->dropped.load(std::memory_order_relaxed);
    for (Chunk* c = slot->head.load(std::memory_order_acquire); c; c = c->next.load(std::memory_order_acquire)) {
      const std::int64_t count = c->count.load(std::memory_order_acquire);
      for (std::int64_t i = 0; i < count; ++i) {
        const Event& e = c->events[static_cast<std::size_t>(i)];
        if (e.lane < 0 || static_cast<std::size_t>(e.lane) >= out.lanes.size()) {  // a number lane() never gave
          ++out.dropped;
          continue;
        }
        const std::uint32_t name = index(e.name, e.name_size);
        if (e.is_counter) {
          out.counters.push_back({name, e.lane, e.start, std::bit_cast<double>(e.bytes)});
        } else {
          out.spans.push_back(
              {name, index(e.category, e.category_size), e.lane, e.start, e.end, {e.bytes, e.flops, e.step}});
        }
      }
    }
  }
  sort(out);
  return out;
}

std::uint32_t TraceSnapshot::name_index(std::string_view name) {
  const auto place = std::ranges::find(names, name);
  const auto index = static_cast<std::uint32_t>(place - names.begin());
  if (place == names.end()) names.emplace_back(name);
  return index;
}

void TraceSnapshot::append(const TraceSnapshot& other, std::int64_t offset_ns) {
  std::vector<std::uint32_t> name_of;
  name_of.reserve(other.names.size());
  for (const std::string& name : other.names) name_of.push_back(name_index(name));
  std::vector<std::int32_t> lane_of;
  for (const Lane& lane : other.lanes) {
    const auto place =
        std::ranges::find_if(lanes, [&](const Lane& l) { return l.rank == lane.rank && l.name == lane.name; });
    lane_of.push_back(static_cast<std::int32_t>(place - lanes.begin()));
    if (place == lanes.end()) lanes.push_back(lane);
  }
  for (Span span : other.spans) {
    span.name = name_of.at(span.name);
    span.category = name_of.at(span.category);
    span.lane = lane_of.at(static_cast<std::size_t>(span.lane));
    span.start_ns += offset_ns;
    span.end_ns += offset_ns;
    spans.push_back(span);
  }
  for (Counter counter : other.counters) {
    counter.name = name_of.at(counter.name);
    counter.lane = lane_of.at(static_cast<std::size_t>(counter.lane));
    counter.time_ns += offset_ns;
    counters.push_back(counter);
  }
  dropped += other.dropped;
  sort(*this);
}

// ---- Chrome's JSON
// ---------------------------------------------------------------------------------------------------

namespace detail {

std::size_t utf8_sequence(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[i])) : 0u;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned a = byte(0);
  const unsigned b = byte(1);
  if (a < 0x80) return 1;
  if (a >= 0xc2 && a <= 0xdf) return continues(1) ? 2 : 0;
  if ((a & 0xf0u) == 0xe0u) {
    const bool overlong = a == 0xe0 && b < 0xa0;
    const bool surrogate = a == 0xed && b > 0x9f;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (a >= 0xf0 && a <= 0xf4) {
    const bool overlong = a == 0xf0 && b < 0x90;
    const bool beyond = a == 0xf4 && b > 0x8f;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    const auto c = static_cast<unsigned char>(text.front());
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  out += '"';
}

}  // namespace detail

namespace {

// Gives the text to `sink` piece by piece, so that a large trace is never in memory twice.
template <class Sink>
void chrome_json(const TraceSnapshot& trace, Sink&& sink) {
  std::string line;
  const auto add = [&line]<class... A>(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(line), format, std::forward<A>(args)...);
  };
  bool first = true;
  const auto begin = [&](std::string_view phase) {
    line.clear();
    line += first ? "\n" : ",\n";
    first = false;
    add("{{\"ph\":\"{}\"", phase);
  };
  const auto micros = [&](std::string_view key, std::int64_t ns) {
    add(",\"{}\":{}.{:03}", key, ns / 1000, ns % 1000);
  };

  std::int64_t origin = 0;
  if (!trace.spans.empty()) origin = trace.spans.front().start_ns;
  if (!trace.counters.empty() && (trace.spans.empty() || trace.counters.front().time_ns < origin)) {
    origin = trace.counters.front().time_ns;
  }

  sink(fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"dropped_events\":{}}},\"traceEvents\":[",
                   trace.dropped));
  std::set<int> ranks;
  for (const TraceSnapshot::Lane& lane : trace.lanes) ranks.insert(lane.rank);
  for (const int rank : ranks) {
    begin("M");
    add(",\"name\":\"process_name\",\"pid\":{0},\"tid\":0,\"args\":{{\"name\":\"rank {0}\"}}}}", rank);
    sink(line);
    begin("M");
    add(",\"name\":\"process_sort_index\",\"pid\":{0},\"tid\":0,\"args\":{{\"sort_index\":{0}}}}}", rank);
    sink(line);
  }
  for (std::size_t i = 0; i < trace.lanes.size(); ++i) {
    begin("M");
    add(",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":", trace.lanes[i].rank, i);
    detail::append_json_string(line, trace.lanes[i].name);
    line += "}}";
    sink(line);
    begin("M");
    add(",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}", trace.lanes[i].rank,
        i, i);
    sink(line);
  }

  for (const TraceSnapshot::Span& span : trace.spans) {
    begin("X");
    line += ",\"name\":";
    detail::append_json_string(line, trace.names[span.name]);
    if (!trace.names[span.category].empty()) {
      line += ",\"cat\":";
      detail::append_json_string(line, trace.names[span.category]);
    }
    add(",\"pid\":{},\"tid\":{}", trace.lanes[static_cast<std::size_t>(span.lane)].rank, span.lane);
    micros("ts", span.start_ns - origin);
    micros("dur", span.end_ns - span.start_ns);
    std::string_view separator = ",\"args\":{";
    const auto arg = [&](std::string_view key, std::int64_t value) {
      if (value < 0) return;
      add("{}\"{}\":{}", separator, key, value);
      separator = ",";
    };
    arg("step", span.args.step);
    arg("bytes", span.args.bytes);
    arg("flops", span.args.flops);
    line += separator == "," ? "}}" : "}";
    sink(line);
  }
  for (const TraceSnapshot::Counter& counter : trace.counters) {
    if (!std::isfinite(counter.value)) continue;
    begin("C");
    line += ",\"name\":";
    detail::append_json_string(line, trace.names[counter.name]);
    add(",\"pid\":{}", trace.lanes[static_cast<std::size_t>(counter.lane)].rank);
    micros("ts", counter.time_ns - origin);
    add(",\"args\":{{\"value\":{}}}}}", counter.value);
    sink(line);
  }
  sink("\n]}\n");
}

}  // namespace

void write_chrome_json(std::ostream& out, const TraceSnapshot& trace) {
  chrome_json(trace, [&](std::string_view text) { out.write(text.data(), static_cast<std::streamsize>(text.size())); });
}

std::string to_chrome_json(const TraceSnapshot& trace) {
  std::string out;
  chrome_json(trace, [&](std::string_view text) { out += text; });
  return out;
}

}  // namespace lamina
