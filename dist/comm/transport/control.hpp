// Control: what ranks tell each other beside the data, over one socket a pair. It learns of deaths (the socket ends
// without a goodbye), carries aborts, questions and answers, and rings the doorbell of ranks that sleep. Nothing
// blocks: what a socket does not take at once waits in a small outbox.
//
// Thread-safety: as Transport's: one thread at a time, but for wait() and wake().
#pragma once

#include <atomic>

#include "lamina/dist/comm/transport/socket.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

class Control {
 public:
  /// Sockets and names (for messages) [peer]; this rank's own are empty.
  Control(std::string where, int rank, std::vector<Descriptor> sockets, std::vector<std::string> names);
  /// Says goodbye.
  ~Control();

  /// Throws PeerLost if the peer is gone, as far as is known.
  void require(int peer) const {
    if (peers_[peer].life != Life::here) fail_gone(peer);
  }
  bool left(int peer) const noexcept { return peers_[peer].life == Life::left; }
  /// A data connection broke. Unless its goodbye turns up soon, the peer is lost.
  void suspect(int peer, const std::string& reason);
  /// Wakes a peer that sleeps, or is about to.
  void ring(int peer);

  // ---- Transport's ----
  std::optional<Abort> check(const RankState& mine);
  void abort(const Abort& why);
  void ask();
  std::span<const RankState> answers() const noexcept { return answers_; }
  /// Until a socket has something, wake(), or the time has come; `also`: another descriptor to wait for.
  void wait(Clock::time_point until, int also = -1);
  void wake();
  /// Forgets what ended earlier waits, so that it does not end the next.
  void settle();

 private:
  enum class Life : std::uint8_t { here, left, lost };
  struct Peer {
    Descriptor socket;
    std::string name;
    std::string inbox, outbox;
    Life life = Life::here;
    std::string fate;                      // of one that is not here
    std::optional<std::uint32_t> wonders;  // its question that is not yet answered
    Clock::time_point suspected = Clock::time_point::max();
    std::string suspicion;
  };

  void receive();
  void receive_from(int peer);
  void read_frames(int peer);
  void read_frame(int peer, std::uint8_t kind, std::string_view body);
  void send(int peer, std::uint8_t kind, std::string_view body = {});
  void flush(int peer);
  void lose(int peer, const std::string& reason);
  [[noreturn]] void fail_gone(int peer) const;

  std::string where_;
  int rank_;
  std::vector<Peer> peers_;
  std::vector<RankState> answers_;
  std::uint32_t question_ = 0;
  std::optional<Abort> verdict_;
  Descriptor ready_;                 // epoll: the sockets of those that are here, and wake_
  Descriptor wake_;                  // eventfd
  std::atomic<bool> waited_{false};  // since it was last settled
};

/// A transport that leaves to its control what is not data.
class ControlledTransport : public Transport {
 public:
  void wake() final { control_.wake(); }
  std::optional<Abort> check(const RankState& mine) final { return control_.check(mine); }
  void abort(const Abort& why) final { control_.abort(why); }
  void ask() final { control_.ask(); }
  std::span<const RankState> answers() const noexcept final { return control_.answers(); }

 protected:
  /// As Control's.
  ControlledTransport(std::string where, int rank, std::vector<Descriptor> sockets, std::vector<std::string> names)
      : Transport(rank, static_cast<int>(sockets.size())),
        control_(std::move(where), rank, std::move(sockets), std::move(names)) {}

  Control control_;
};

}  // namespace lamina::comm
