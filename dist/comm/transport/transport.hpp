// Transport: moves messages between the ranks of one group. A pair of ranks has one stream of messages each way; they
// arrive whole and in order. It knows nothing of collectives: PlanRunner decides what to send and where bytes go.
//
// Thread-safety: one thread at a time calls a transport (PlanRunner's lock), but for sleep() and wake().
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamina/dist/comm/message.hpp"

namespace lamina::comm {

using Clock = std::chrono::steady_clock;

/// A message to be handed over: its header, and bytes that may be scattered. PlanRunner keeps it until post() is done
/// with it; the memory itself until taken().
class Outgoing {
 public:
  Outgoing() = default;
  Outgoing(const MessageHeader& header, std::vector<std::span<const std::byte>> pieces)
      : header_(header), pieces_(std::move(pieces)) {}

  MessageHeader& header() noexcept { return header_; }
  bool started() const noexcept { return started_; }
  void start() noexcept { started_ = true; }
  std::int64_t left() const noexcept { return header_.bytes - done_; }
  /// The next bytes that lie together; empty at the end.
  std::span<const std::byte> next() const noexcept;
  void advance(std::size_t bytes) noexcept;
  /// All pieces, for transports that read them in place.
  std::span<const std::span<const std::byte>> pieces() const noexcept { return pieces_; }

 private:
  MessageHeader header_;
  std::vector<std::span<const std::byte>> pieces_;
  std::size_t piece_ = 0, at_ = 0;
  std::int64_t done_ = 0;
  bool started_ = false;
};

/// Where the bytes of a message go. A transport that has them shows them; one that is about to read them from somewhere
/// may have them written to where they belong.
class Incoming {
 public:
  virtual ~Incoming() = default;
  /// Bytes of the message not yet in.
  virtual std::int64_t left() const noexcept = 0;
  /// Memory where the next bytes of the message can be written, then wrote(n); empty if they must go through take().
  virtual std::span<std::byte> writable() noexcept = 0;
  virtual void wrote(std::size_t bytes) = 0;
  /// The next bytes, wherever they lie; read only until it returns. Any number of them, also where there is writable().
  virtual void take(std::span<const std::byte> bytes) = 0;
};

/// What a rank answers when it is asked why nothing happens.
struct RankState {
  bool answered = false;
  std::int32_t waits_for = -1;  ///< a rank; -1: for none
  std::string doing;            ///< "all_reduce #12 of 409600 f32, sum, by ring", or "nothing"
};

/// Why a group is no longer usable; told to every rank.
struct Abort {
  enum class Kind : std::uint8_t { peer_lost, timeout, mismatch, other };
  Kind kind = Kind::other;
  std::int32_t rank = -1;  ///< whom it is about
  std::string text;
};

class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// "threads", "shm", "tcp", "mpi"; the link model's adds its numbers.
  virtual std::string name() const = 0;
  /// Latency in seconds and bandwidth in bytes/s of a pair of ranks, nominal: what `automatic` is decided by.
  struct Link {
    double latency_s = 1e-6;
    double bytes_per_s = 1e10;
  };
  virtual Link link() const noexcept = 0;

  // ---- data; never blocks ----

  /// Hands over as much as there is room for. True once the message has been handed over whole; until then the next
  /// call must be for the same message. Throws PeerLost when the peer is gone.
  virtual bool post(int peer, Outgoing& message) = 0;
  /// How many messages to `peer` have had their bytes read, so that their memory may be written again.
  virtual std::uint64_t taken(int peer) = 0;
  /// The header of the next message from `peer`; null when none has arrived. Stays the same until it has been pulled.
  virtual const MessageHeader* front(int peer) = 0;
  /// True when nothing more will come from `peer`, because it left in good order and all it sent has been pulled.
  virtual bool left(int peer) = 0;
  /// Takes in what has arrived of the front message. True once it is in whole (and no longer the front).
  virtual bool pull(int peer, Incoming& to) = 0;

  // ---- waiting ----

  /// Blocks until something may have changed for this rank, wake() is called, or the time has come. Called without
  /// PlanRunner's lock, by one thread at a time. Before it, under the lock, arm(); what arrives from then on ends it.
  virtual void sleep(Clock::time_point until) = 0;
  virtual void arm() = 0;
  /// The opposite of arm(): somebody is looking, doorbells need not ring.
  virtual void disarm() = 0;
  /// Ends sleep(), from any thread.
  virtual void wake() = 0;
  /// When something will change by itself (a link model's messages in flight), or did since the last call; max() for
  /// never.
  virtual Clock::time_point next_change() { return Clock::time_point::max(); }

  // ---- when things go wrong ----

  /// A look at the connections, cheap enough for each turn of a waiting loop but not for each poll of a message.
  /// Answers other ranks' questions with `mine`. Returns what another rank aborted with, or a PeerLost it found itself.
  virtual std::optional<Abort> check(const RankState& mine) = 0;
  /// Tells every rank, without blocking and without an error for those that are gone.
  virtual void abort(const Abort& why) = 0;
  /// Asks every rank; check() gathers the answers.
  virtual void ask() = 0;
  /// The answers to the last ask().
  virtual std::span<const RankState> answers() const noexcept = 0;

 protected:
  Transport(int rank, int size) : rank_(rank), size_(size) {}

 private:
  int rank_, size_;
};

}  // namespace lamina::comm
