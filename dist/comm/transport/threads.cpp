#include "lamina/dist/comm/transport/threads.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/core/inline_vector.hpp"

namespace lamina::comm {

namespace {

/// One message on its way: where its bytes lie, in the sender's memory.
struct Posted {
  enum State : int { waiting, reading, revoked };
  std::atomic<int> state{waiting};
  MessageHeader header;
  InlineVector<std::span<const std::byte>, 4> pieces;
};

/// Messages of one ordered pair of ranks: written by the sender at `posted`, read by the receiver at `taken`.
struct Channel {
  static constexpr std::uint64_t kRoom = 64;
  std::array<Posted, kRoom> ring;
  alignas(64) std::atomic<std::uint64_t> posted{0};
  alignas(64) std::atomic<std::uint64_t> taken{0};
};

/// What wakes one rank.
struct alignas(64) Bell {
  std::atomic<bool> armed{false};
  std::mutex mutex;
  std::condition_variable rings;
  bool rung = false;

  void ring() {
    {
      const std::lock_guard lock(mutex);
      rung = true;
    }
    rings.notify_all();
  }
};

struct World {
  explicit World(int size_)
      : size(size_),
        channels(static_cast<std::size_t>(size_) * static_cast<std::size_t>(size_)),
        bells(static_cast<std::size_t>(size_)),
        gone(static_cast<std::size_t>(size_)),
        answers(static_cast<std::size_t>(size_)) {
    for (auto& c : channels) c = std::make_unique<Channel>();
  }
  Channel& channel(int from, int to) {
    return *channels[static_cast<std::size_t>(from) * static_cast<std::size_t>(size) + static_cast<std::size_t>(to)];
  }
  Bell& bell(int rank) { return bells[static_cast<std::size_t>(rank)]; }

  const int size;
  std::vector<std::unique_ptr<Channel>> channels;
  std::vector<Bell> bells;
  std::vector<std::atomic<bool>> gone;

  std::atomic<bool> aborted{false};
  std::atomic<std::uint64_t> question{0};  // how often anybody has asked everybody
  std::mutex mutex;                        // of what follows
  std::optional<Abort> why;
  struct Answer {
    std::uint64_t question = 0;
    RankState state;
  };
  std::vector<Answer> answers;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<World> world, int rank) : Transport(rank, world->size), world_(std::move(world)) {
    answers_.resize(static_cast<std::size_t>(size()));
  }

  ~ThreadTransport() override {
    revoke();
    world_->gone[static_cast<std::size_t>(rank())].store(true);
    for (int peer = 0; peer < size(); ++peer) world_->bell(peer).ring();
  }

  std::string name() const override { return "threads"; }
  Link link() const noexcept override { return {.latency_s = 1e-6, .bytes_per_s = 1e10}; }

  bool post(int peer, Outgoing& message) override {
    if (is_gone(peer)) fail<PeerLost>("threads", "rank {} has left the group", peer);
    Channel& c = world_->channel(rank(), peer);
    const std::uint64_t at = c.posted.load(std::memory_order_relaxed);
    if (at - c.taken.load(std::memory_order_acquire) == Channel::kRoom) return false;
    Posted& slot = c.ring[at % Channel::kRoom];
    slot.header = message.header();
    slot.pieces.clear();
    for (const auto piece : message.pieces()) slot.pieces.push_back(piece);
    slot.state.store(Posted::waiting, std::memory_order_relaxed);
    c.posted.store(at + 1);
    ring_if_armed(peer);
    return true;
  }

  std::uint64_t taken(int peer) override { return world_->channel(rank(), peer).taken.load(std::memory_order_acquire); }

  const MessageHeader* front(int peer) override {
    Channel& c = world_->channel(peer, rank());
    const std::uint64_t at = c.taken.load(std::memory_order_relaxed);
    return at == c.posted.load(std::memory_order_acquire) ? nullptr : &c.ring[at % Channel::kRoom].header;
  }

  bool left(int peer) override { return is_gone(peer) && front(peer) == nullptr; }

  bool pull(int peer, Incoming& to) override {
    Channel& c = world_->channel(peer, rank());
    const std::uint64_t at = c.taken.load(std::memory_order_relaxed);
    Posted& slot = c.ring[at % Channel::kRoom];
    int state = Posted::waiting;
    if (!slot.state.compare_exchange_strong(state, Posted::reading, std::memory_order_acquire)) {
      fail<PeerLost>("threads", "rank {} gave up in the middle of {}", peer, to_string(slot.header.what));
    }
    for (const auto piece : slot.pieces) to.take(piece);
    c.taken.store(at + 1);
    ring_if_armed(peer);
    return true;
  }

  void sleep(Clock::time_point until) override {
    Bell& bell = world_->bell(rank());
    std::unique_lock lock(bell.mutex);
    if (until == Clock::time_point::max()) {
      bell.rings.wait(lock, [&] { return bell.rung; });
    } else {
      bell.rings.wait_until(lock, until, [&] { return bell.rung; });
    }
    bell.rung = false;
  }
  void arm() override { world_->bell(rank()).armed.store(true); }
  void disarm() override { world_->bell(rank()).armed.store(false, std::memory_order_relaxed); }
  void wake() override { world_->bell(rank()).ring(); }

  std::optional<Abort> check(const RankState& mine) override {
    const std::uint64_t question = world_->question.load();
    if (question != answered_) {
      answered_ = question;
      const std::lock_guard lock(world_->mutex);
      World::Answer& answer = world_->answers[static_cast<std::size_t>(rank())];
      answer = {question, mine};
      answer.state.answered = true;
    }
    if (asked_ != 0) {
      const std::lock_guard lock(world_->mutex);
      for (std::size_t peer = 0; peer < answers_.size(); ++peer) {
        const World::Answer& answer = world_->answers[peer];
        if (answer.question >= asked_) answers_[peer] = answer.state;
      }
    }
    if (!world_->aborted.load()) return std::nullopt;
    const std::lock_guard lock(world_->mutex);
    return world_->why;
  }

  void abort(const Abort& why) override {
    {
      const std::lock_guard lock(world_->mutex);
      if (!world_->why) world_->why = why;  // the first reason is everybody's
    }
    world_->aborted.store(true);
    revoke();
    ring_all();
  }

  void ask() override {
    asked_ = world_->question.fetch_add(1) + 1;
    answers_.assign(answers_.size(), RankState{});
    ring_all();
  }
  std::span<const RankState> answers() const noexcept override { return answers_; }

 private:
  bool is_gone(int peer) const { return world_->gone[static_cast<std::size_t>(peer)].load(); }
  void ring_if_armed(int peer) {
    Bell& bell = world_->bell(peer);
    if (bell.armed.load() && bell.armed.exchange(false)) bell.ring();
  }
  void ring_all() {
    for (int peer = 0; peer < size(); ++peer) {
      if (peer != rank()) world_->bell(peer).ring();
    }
  }
  // From here on nobody reads this rank's memory any more.
  void revoke() {
    for (int peer = 0; peer < size(); ++peer) {
      Channel& c = world_->channel(rank(), peer);
      const std::uint64_t end = c.posted.load(std::memory_order_relaxed);
      for (std::uint64_t at = c.taken.load(); at < end; ++at) {
        int state = Posted::waiting;
        if (c.ring[at % Channel::kRoom].state.compare_exchange_strong(state, Posted::revoked)) continue;
        while (state == Posted::reading && c.taken.load() <= at) std::this_thread::yield();
      }
    }
  }

  std::shared_ptr<World> world_;
  std::vector<RankState> answers_;
  std::uint64_t answered_ = 0, asked_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> thread_transports(int size) {
  if (size < 1) fail<ValueError>("threads", "{} ranks; at least 1", size);
  const auto world = std::make_shared<World>(size);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) transports.push_back(std::make_unique<ThreadTransport>(world, rank));
  return transports;
}

}  // namespace lamina::comm
