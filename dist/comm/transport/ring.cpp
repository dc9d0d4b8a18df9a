#include "lamina/dist/comm/transport/ring.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

constexpr std::uint64_t kLine = 64;
// Large enough that a record costs nothing beside it, small enough that the reader follows closely.
constexpr std::uint64_t kFragment = 64 << 10;
// Rather wait than cut a message into crumbs.
constexpr std::uint64_t kLeastFragment = 4 << 10;

struct alignas(kLine) Record {
  std::atomic<std::uint64_t> stamp;  // its position + 1 once it is whole, 0 before
  std::uint32_t bytes;               // of payload in this record
  std::uint32_t first;               // 1: begins a message, `header` is there; 0: continues one
  MessageHeader header;
};
static_assert(sizeof(Record) == kLine && std::is_trivially_copyable_v<MessageHeader>);

constexpr std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + kLine - 1) & ~(kLine - 1); }

}  // namespace

void check_ring_bytes(std::size_t bytes) {
  if (!std::has_single_bit(bytes) || bytes < 1024 || bytes > std::size_t{1} << 30) {
    fail<ValueError>("shm", "a ring of {} bytes: it has to be a power of two from 1024 to 2^30", bytes);
  }
}

// ---- writer ----

void RingWriter::refresh() {
  const std::uint64_t taken = state_->taken.load(std::memory_order_seq_cst);
  if (taken < taken_ || taken > at_ || taken % kLine != 0) {
    fail<IoError>("shm", "rank {} is broken: it says it has read {} bytes of {}, before it was {}", reader_, taken, at_,
                  taken_);
  }
  taken_ = taken;
}

bool RingWriter::put(Outgoing& message) {
  const std::uint64_t payload_at = (at_ + kLine) & (size_ - 1);
  // The payload lies together, and behind it there is room for the next header.
  std::uint64_t bytes =
      std::min({static_cast<std::uint64_t>(message.left()), kFragment, size_ / 4, size_ - payload_at});
  const auto room = [&] {
    return static_cast<std::int64_t>(size_ - (at_ - taken_)) - static_cast<std::int64_t>(2 * kLine);
  };
  if (room() < static_cast<std::int64_t>(whole_lines(bytes))) {
    refresh();
    blocked_ = room() < static_cast<std::int64_t>(whole_lines(std::min(bytes, kLeastFragment)));
    if (blocked_) return false;
    bytes = std::min(bytes, static_cast<std::uint64_t>(room()));
  }

  for (std::uint64_t done = 0; done < bytes;) {
    const std::span<const std::byte> piece = message.next();
    const std::size_t n = std::min(piece.size(), static_cast<std::size_t>(bytes - done));
    std::copy_n(piece.data(), n, bytes_ + payload_at + done);  // pieces may be empty
    message.advance(n);
    done += n;
  }
  auto* record = reinterpret_cast<Record*>(bytes_ + (at_ & (size_ - 1)));
  record->bytes = static_cast<std::uint32_t>(bytes);
  record->first = in_message_ ? 0 : 1;
  if (!in_message_) record->header = message.header();
  in_message_ = message.left() > 0;
  const std::uint64_t next = at_ + kLine + whole_lines(bytes);
  reinterpret_cast<Record*>(bytes_ + (next & (size_ - 1)))->stamp.store(0, std::memory_order_relaxed);
  record->stamp.store(at_ + 1, std::memory_order_seq_cst);  // before looking whether the reader sleeps
  at_ = next;
  // The lines that a small message writes next are fetched while there is time.
  for (std::uint64_t line = 1; line <= 2; ++line) __builtin_prefetch(bytes_ + ((at_ + line * kLine) & (size_ - 1)), 1);
  return true;
}

bool RingWriter::arm() {
  if (!blocked_) return false;
  state_->wants_room.store(1, std::memory_order_seq_cst);
  const std::uint64_t before = taken_;
  refresh();
  return taken_ != before;
}

void RingWriter::disarm() {
  if (blocked_) state_->wants_room.store(0, std::memory_order_relaxed);
}

// ---- reader ----

void RingReader::fail_broken(const std::string& what) const {
  fail<IoError>("shm", "rank {} is broken: at byte {} of its ring {}", writer_, at_, what);
}

// The record's numbers are read once and checked: the writer could change them at any time.
bool RingReader::look() {
  if (seen_ == at_) return true;
  const auto* record = reinterpret_cast<const Record*>(bytes_ + (at_ & (size_ - 1)));
  const std::uint64_t stamp = record->stamp.load(std::memory_order_seq_cst);
  if (stamp == 0) return false;
  if (stamp != at_ + 1) fail_broken(fmt::format("there is the stamp {}", stamp));
  const std::uint32_t bytes = record->bytes, first = record->first;
  if (first != (in_message_ ? 0u : 1u)) fail_broken(in_message_ ? "a message begins in another" : "no message begins");
  if (first == 1) {
    header_ = record->header;
    if (!is_valid(header_)) fail_broken("there is no header of a message");
    left_ = header_.bytes;
    in_message_ = true;
  }
  const std::uint64_t together = size_ - ((at_ + kLine) & (size_ - 1));
  if (bytes > together || bytes > static_cast<std::uint64_t>(left_) || (bytes == 0 && left_ > 0)) {
    fail_broken(fmt::format("there is a fragment of {} bytes, of a message that lacks {}", bytes, left_));
  }
  fragment_ = bytes;
  seen_ = at_;
  return true;
}

const MessageHeader* RingReader::front() { return in_message_ || look() ? &header_ : nullptr; }

RingReader::Pulled RingReader::pull(Incoming& to) {
  if (!look()) return Pulled::nothing;
  to.take({bytes_ + ((at_ + kLine) & (size_ - 1)), fragment_});
  left_ -= static_cast<std::int64_t>(fragment_);
  in_message_ = left_ > 0;
  at_ += kLine + whole_lines(fragment_);
  state_->taken.store(at_, std::memory_order_seq_cst);  // before looking whether the writer sleeps
  return in_message_ ? Pulled::fragment : Pulled::message;
}

bool RingReader::writer_wants_room() {
  return state_->wants_room.load(std::memory_order_seq_cst) != 0 &&
         state_->wants_room.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingReader::arm() { return seen_ != at_ && look(); }

}  // namespace lamina::comm
