#include "lamina/dist/comm/transport/link_model.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

class LinkModel final : public Transport {
 public:
  LinkModel(std::unique_ptr<Transport> inner, const Link& link)
      : Transport(inner->rank(), inner->size()),
        inner_(std::move(inner)),
        link_(link),
        peers_(static_cast<std::size_t>(size())) {}

  std::string name() const override {
    return fmt::format("{} behind a link of {:g} us, {:g} GB/s", inner_->name(), link_.latency_s * 1e6,
                       link_.bytes_per_s / 1e9);
  }
  Link link() const noexcept override {
    return {std::max(link_.latency_s, inner_->link().latency_s),
            link_.bytes_per_s > 0 ? link_.bytes_per_s : inner_->link().bytes_per_s};
  }

  // A message is handed on at once with the time at which it will have arrived; the receiver does not see it before.
  bool post(int peer, Outgoing& message) override {
    if (!message.started()) {
      message.start();
      const double seconds =
          link_.bytes_per_s > 0 ? static_cast<double>(message.header().bytes) / link_.bytes_per_s : 0.0;
      free_ns_ = std::max(now_ns(), free_ns_) + static_cast<std::int64_t>(seconds * 1e9);
      message.header().ready_ns = free_ns_ + static_cast<std::int64_t>(link_.latency_s * 1e9);
    }
    if (!inner_->post(peer, message)) return false;
    peers_[static_cast<std::size_t>(peer)].leaving.push_back(message.header().ready_ns -
                                                             static_cast<std::int64_t>(link_.latency_s * 1e9));
    return true;
  }

  std::uint64_t taken(int peer) override {
    Peer& p = peers_[static_cast<std::size_t>(peer)];
    if (!p.leaving.empty()) p.note(now_ns());
    return std::min(p.left, inner_->taken(peer));
  }

  const MessageHeader* front(int peer) override {
    const MessageHeader* header = inner_->front(peer);
    Peer& p = peers_[static_cast<std::size_t>(peer)];
    p.arrives = header != nullptr && header->ready_ns > now_ns() ? header->ready_ns : kNever;
    return p.arrives == kNever ? header : nullptr;
  }

  bool left(int peer) override { return inner_->left(peer); }
  bool pull(int peer, Incoming& to) override { return inner_->pull(peer, to); }

  void sleep(Clock::time_point until) override { inner_->sleep(until); }
  void arm() override { inner_->arm(); }
  void disarm() override { inner_->disarm(); }
  void wake() override { inner_->wake(); }
  Clock::time_point next_change() override {
    std::int64_t first = kNever;
    const std::int64_t now = now_ns();
    for (Peer& p : peers_) {
      first = std::min(first, p.arrives);
      if (p.note(now)) first = std::min(first, now);
      if (!p.leaving.empty()) first = std::min(first, p.leaving.front());
    }
    return first == kNever ? inner_->next_change() : Clock::time_point(std::chrono::nanoseconds(first));
  }

  std::optional<Abort> check(const RankState& mine) override { return inner_->check(mine); }
  void abort(const Abort& why) override { inner_->abort(why); }
  void ask() override { inner_->ask(); }
  std::span<const RankState> answers() const noexcept override { return inner_->answers(); }

 private:
  struct Peer {
    std::deque<std::int64_t> leaving;  // when each message to it will have left, in order
    std::uint64_t left = 0;            // messages that have
    std::int64_t arrives = kNever;     // when its front message will be here

    // True when any has left since the last look.
    bool note(std::int64_t now) {
      const std::uint64_t before = left;
      for (; !leaving.empty() && leaving.front() <= now; ++left) leaving.pop_front();
      return left != before;
    }
  };

  std::unique_ptr<Transport> inner_;
  Link link_;
  std::vector<Peer> peers_;
  std::int64_t free_ns_ = 0;  // when the link has sent all it was given
};

}  // namespace

std::unique_ptr<Transport> with_link_model(std::unique_ptr<Transport> inner, const Transport::Link& link) {
  if (!(link.latency_s >= 0 && link.latency_s <= 60) || !(link.bytes_per_s >= 0)) {
    fail<ValueError>("link model", "latency {} s, bandwidth {} bytes/s; at least 0, latency at most 60 s",
                     link.latency_s, link.bytes_per_s);
  }
  return std::make_unique<LinkModel>(std::move(inner), link);
}

}  // namespace lamina::comm
