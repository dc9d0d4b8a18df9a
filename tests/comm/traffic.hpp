// Traffic between bare transports: messages whose every byte says where it belongs, and the loop that moves them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

/// A small generator of test data: the same on all ranks.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  std::int64_t below(std::int64_t n) noexcept { return static_cast<std::int64_t>((next() >> 11) % n); }

 private:
  std::uint64_t state_;
};

/// Byte `at` of message `sequence` from `from` to `to`.
inline std::byte byte_of(int from, int to, std::uint64_t sequence, std::int64_t at) noexcept {
  std::uint64_t x = static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15ull + sequence * 1000003 +
                    static_cast<std::uint64_t>(from * 131 + to * 17);
  x ^= x >> 29;
  return static_cast<std::byte>(x * 0xbf58476d1ce4e5b9ull >> 56);
}

/// A message in scattered pieces, some of them empty.
struct TestMessage {
  std::vector<std::vector<std::byte>> memory;
  Outgoing outgoing;

  TestMessage(int from, int to, std::uint64_t sequence, std::int64_t bytes, int pieces) {
    Dice dice(sequence + 7);
    std::vector<std::int64_t> cuts = {0, bytes};
    for (int i = 1; i < pieces; ++i) cuts.push_back(dice.below(bytes + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<std::span<const std::byte>> spans;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      std::vector<std::byte>& piece = memory.emplace_back();
      for (std::int64_t at = cuts[i]; at < cuts[i + 1]; ++at) piece.push_back(byte_of(from, to, sequence, at));
    }
    for (const auto& piece : memory) spans.emplace_back(piece);
    MessageHeader header;
    header.what.op = Collective::point_to_point;
    header.what.sequence = sequence;
    header.what.count = bytes;
    header.bytes = bytes;
    outgoing = Outgoing(header, std::move(spans));
  }
};

/// Takes a message into memory of its own, or shown, or now this and now that.
class TestSink final : public Incoming {
 public:
  enum class Way { written, shown, mixed };
  TestSink(std::int64_t bytes, Way way, std::uint64_t seed) : memory_(bytes), way_(way), dice_(seed) {}

  std::int64_t left() const noexcept override { return static_cast<std::int64_t>(memory_.size()) - at_; }
  std::span<std::byte> writable() noexcept override {
    if (way_ == Way::shown || (way_ == Way::mixed && dice_.below(2) == 0)) return {};
    const std::span<std::byte> rest = std::span(memory_).subspan(at_);
    return way_ == Way::mixed ? rest.first(std::min<std::size_t>(rest.size(), dice_.below(5000) + 1)) : rest;
  }
  void wrote(std::size_t bytes) override { at_ += static_cast<std::int64_t>(bytes); }
  void take(std::span<const std::byte> bytes) override {
    if (static_cast<std::int64_t>(bytes.size()) > left()) throw std::runtime_error("more bytes than the message has");
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + at_);
    at_ += static_cast<std::int64_t>(bytes.size());
  }
  bool is_right(int from, int to, std::uint64_t sequence) const {
    if (left() != 0) return false;
    for (std::int64_t at = 0; at < at_; ++at) {
      if (memory_[at] != byte_of(from, to, sequence, at)) return false;
    }
    return true;
  }

 private:
  std::vector<std::byte> memory_;
  std::int64_t at_ = 0;
  Way way_;
  Dice dice_;
};

/// Calls step() until it says done(), polling `spins` times and then asleep. Throws for an abort, for a wake-up that
/// was lost, and when nothing moves for long.
template <class Step, class Done>
void drive(Transport& transport, int spins, Step step, Done done) {
  constexpr auto kLong = std::chrono::seconds(20);
  int idle = 0;
  while (!done()) {
    if (step()) {
      idle = 0;
      continue;
    }
    if (++idle <= spins) continue;
    if (const auto why = transport.check({})) throw PeerLost(why->text);
    transport.arm();
    if (!step()) {
      const auto until = Clock::now() + kLong;
      transport.sleep(until);
      if (Clock::now() >= until) throw std::runtime_error(step() ? "a wake-up was lost" : "nothing moves");
    }
    transport.disarm();
  }
}

/// Sends and receives one message each, to and from every peer at the same time.
class Traffic {
 public:
  Traffic(Transport& transport, std::uint64_t seed, int messages, std::int64_t most)
      : transport_(transport), seed_(seed), messages_(messages), most_(most), peers_(transport.size()) {
    for (int peer = 0; peer < transport.size(); ++peer) taken_before_.push_back(transport.taken(peer));
  }

  void run(int spins) {
    drive(
        transport_, spins, [&] { return step(); }, [&] { return done(); });
  }
  /// Of message k from a to b.
  std::int64_t bytes_of(int from, int to, int k) const {
    Dice dice(seed_ + static_cast<std::uint64_t>(from * 10007 + to * 101 + k));
    dice.next();
    const std::int64_t sizes[] = {0, 1, dice.below(64), dice.below(5000), dice.below(most_ + 1), most_};
    return sizes[dice.below(6)];
  }

 private:
  struct Peer {
    int sent = 0, received = 0;
    std::unique_ptr<TestMessage> message;
    std::unique_ptr<TestSink> sink;
  };
  bool done() {
    for (int peer = 0; peer < transport_.size(); ++peer) {
      if (peer == transport_.rank()) continue;
      if (peers_[peer].sent < messages_ || peers_[peer].received < messages_) return false;
      if (transport_.taken(peer) < taken_before_[peer] + static_cast<std::uint64_t>(messages_)) return false;
    }
    return true;
  }
  bool step() {
    bool moved = false;
    const int me = transport_.rank();
    for (int peer = 0; peer < transport_.size(); ++peer) {
      Peer& it = peers_[peer];
      if (peer == me) continue;
      if (it.sent < messages_) {
        const auto k = static_cast<std::uint64_t>(it.sent);
        if (!it.message) {
          it.message = std::make_unique<TestMessage>(me, peer, k, bytes_of(me, peer, it.sent), 1 + it.sent % 4);
        }
        const std::int64_t before = it.message->outgoing.left();
        if (transport_.post(peer, it.message->outgoing)) {
          it.message.reset();
          ++it.sent;
          moved = true;
        } else {
          moved = moved || it.message->outgoing.left() != before;
        }
      }
      if (it.received < messages_) {
        const auto k = static_cast<std::uint64_t>(it.received);
        if (!it.sink) {
          const MessageHeader* header = transport_.front(peer);
          if (header == nullptr) continue;
          const std::int64_t bytes = bytes_of(peer, me, it.received);
          if (header->what.sequence != k || header->bytes != bytes || header->what.count != bytes) {
            throw std::runtime_error("the header of another message");
          }
          it.sink = std::make_unique<TestSink>(bytes, static_cast<TestSink::Way>(it.received % 3), k);
        }
        const std::int64_t before = it.sink->left();
        if (transport_.pull(peer, *it.sink)) {
          if (!it.sink->is_right(peer, me, k)) throw std::runtime_error("wrong bytes");
          it.sink.reset();
          ++it.received;
          moved = true;
        } else {
          moved = moved || it.sink->left() != before;
        }
      }
    }
    return moved;
  }

  Transport& transport_;
  std::uint64_t seed_;
  int messages_;
  std::int64_t most_;
  std::vector<Peer> peers_;
  std::vector<std::uint64_t> taken_before_;
};

}  // namespace lamina::comm
