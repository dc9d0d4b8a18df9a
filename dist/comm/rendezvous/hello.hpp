// What ranks tell each other before anything else, whatever way they meet: who they are, and what went wrong.
// Thread-safety: pure functions and values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/dist/comm/message.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

namespace lamina::comm {

/// Numbers and texts one after another, little-endian, each text with its length.
void put_number(std::string& to, std::uint64_t value);
void put_text(std::string& to, std::string_view text);

/// Reads them back. What is not there, or is longer than all there is, makes it not ok(); nothing is thrown.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : left_(bytes) {}
  std::uint64_t number() noexcept;
  std::string_view text() noexcept;
  /// Everything was there so far.
  bool ok() const noexcept { return ok_; }
  /// And nothing is left.
  bool done() const noexcept { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

/// A rank introduces itself. Every version begins with these fields.
struct Hello {
  std::uint32_t version = kProtocolVersion;
  std::int64_t rank = 0;
  std::int64_t size = 1;
  std::chrono::milliseconds left{0};  ///< until its deadline
  std::string job;
  std::string who;  ///< "pid 4123 on n1"

  /// "rank 2 (pid 4123 on n1)".
  std::string name() const;
};
/// The bytes of a hello are at most so many.
inline constexpr std::size_t kMaxHello = 1024;

/// The hello of this process.
Hello hello_of(const Meeting& meeting, std::chrono::steady_clock::time_point deadline);
/// Without the version, which is the frame's or file's.
std::string encode(const Hello& hello);
std::optional<Hello> decode_hello(std::string_view bytes, std::uint32_t version);

/// Why a meeting is over, told to every rank.
struct Verdict {
  enum class Kind : std::uint8_t { mismatch, timeout, peer_lost };
  Kind kind = Kind::mismatch;
  std::string text;
};
std::string encode(const Verdict& verdict);
std::optional<Verdict> decode_verdict(std::string_view bytes);
/// Throws Mismatch, Timeout or PeerLost.
[[noreturn]] void raise(const Verdict& verdict);

/// Whether `guest` is of another job than `host`, which is no matter of the host's; else how the two do not fit.
std::optional<std::string> other_job(const Hello& host, const Hello& guest);
std::optional<std::string> misfit(const Hello& host, const Hello& guest);
std::string came_twice(const Hello& first, const Hello& second);

/// "rank 3", "ranks 1, 2 and 5", "ranks 1, 2, ... (120 ranks)".
std::string list_ranks(std::span<const int> ranks);

/// The blobs of all ranks as one text and back; empty when `bytes` is not the blobs of `size` ranks.
std::string encode_blobs(const std::vector<std::string>& blobs);
std::vector<std::string> decode_blobs(std::string_view bytes, int size);

/// What all kinds of rendezvous do the same way: the limit of a blob, and that a failure is final.
class CheckedRendezvous : public Rendezvous {
 public:
  std::vector<std::string> exchange(const std::string& blob) final;

 protected:
  virtual std::vector<std::string> meet(const std::string& blob) = 0;

 private:
  std::exception_ptr failure_;
};

}  // namespace lamina::comm
