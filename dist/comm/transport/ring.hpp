// Ring: the bytes that one rank sends another through shared memory. A power of two of bytes, cut into records that
// begin on cache lines: a header of one line, then the payload of a fragment, which lies together. What follows the
// last record is a header whose stamp is zero, so that the reader looks at one cache line only: the one that also holds
// the header when it comes.
//
// Single producer, single consumer. Neither trusts what it reads: the other side may be broken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

/// What the two sides of a ring share beside its bytes. Zeroed memory is an empty ring.
struct RingState {
  alignas(128) std::atomic<std::uint64_t> taken;       ///< the reader: bytes that may be written again
  alignas(128) std::atomic<std::uint32_t> wants_room;  ///< the writer: it sleeps until `taken` moves
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// Throws ValueError for sizes that are not a power of two of at least 1 KiB.
void check_ring_bytes(std::size_t bytes);

class RingWriter {
 public:
  RingWriter(RingState& state, std::byte* bytes, std::size_t size, int reader) noexcept
      : state_(&state), bytes_(bytes), size_(size), reader_(reader) {}

  /// Writes the next fragment of a message if there is room. Throws IoError for what the reader cannot have meant.
  bool put(Outgoing& message);
  /// Before sleeping: asks for a doorbell if the last put() found no room. True if there is room by now.
  bool arm();
  void disarm();

 private:
  void refresh();

  RingState* state_;
  std::byte* bytes_;
  std::uint64_t size_;
  int reader_;
  std::uint64_t at_ = 0;     // where the next record goes; offsets are modulo the size
  std::uint64_t taken_ = 0;  // as last seen
  bool in_message_ = false;
  bool blocked_ = false;
};

class RingReader {
 public:
  RingReader(RingState& state, const std::byte* bytes, std::size_t size, int writer) noexcept
      : state_(&state), bytes_(bytes), size_(size), writer_(writer) {}

  /// Is there a record? Throws IoError for one that makes no sense.
  bool look();
  /// The header of the message whose fragments come next, or null. Throws as look().
  const MessageHeader* front();
  enum class Pulled : std::uint8_t { nothing, fragment, message };
  /// Takes in one fragment of the front message; `message`: it was the last one.
  Pulled pull(Incoming& to);
  /// After pull(): does the writer sleep until there is room? Answers yes once.
  bool writer_wants_room();
  /// Before sleeping: true if a record has come that front() and pull() have not been seen to find.
  bool arm();

 private:
  [[noreturn]] void fail_broken(const std::string& what) const;

  RingState* state_;
  const std::byte* bytes_;
  std::uint64_t size_;
  int writer_;
  std::uint64_t at_ = 0;        // of the next record
  std::uint64_t seen_ = ~0ull;  // the record last found there
  MessageHeader header_;        // of the message in progress
  bool in_message_ = false;
  std::int64_t left_ = 0;       // of its payload
  std::uint64_t fragment_ = 0;  // payload of the record at at_, once it has been found
};

}  // namespace lamina::comm
