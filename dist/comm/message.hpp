// What travels between ranks beside the payload. Every message says what its sender believes both sides are doing, so
// that ranks that disagree get a Mismatch with both texts instead of a hang or a wrong tail.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lamina/core/dtype.hpp"

namespace lamina::comm {

enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  gather,
  scatter,
  barrier,
  point_to_point,
};
enum class Reduction : std::uint8_t { sum, mean, min, max, product };
enum class Algorithm : std::uint8_t {
  automatic,         ///< chosen from the size and the link
  ring,              ///< least bytes, 2 (n - 1) latencies
  halving_doubling,  ///< least bytes, 2 log2(n) latencies
  doubling,          ///< log2(n) latencies, all bytes in each
  tree,              ///< a binary tree up and down
  rank_order,        ///< ((a0 + a1) + a2) + ...: for equality tests
  direct,            ///< every pair once: all_to_all, gather, scatter, point to point
};

std::string_view name_of(Collective op) noexcept;
std::string_view name_of(Reduction reduction) noexcept;
std::string_view name_of(Algorithm algorithm) noexcept;

/// What a rank is doing. All ranks of a collective must have the same one.
struct Signature {
  Collective op = Collective::barrier;
  DType dtype = DType::u8;
  Reduction reduction = Reduction::sum;
  Algorithm algorithm = Algorithm::automatic;
  std::int32_t root = 0;       ///< broadcast, gather, scatter: the root; point to point: the tag
  std::uint64_t sequence = 0;  ///< the how-manieth collective of the group; 0 for point to point
  std::int64_t count = 0;      ///< elements, as the caller gave them
  friend bool operator==(const Signature&, const Signature&) = default;
};

/// "all_reduce #12 of 409600 f32, sum, by ring".
std::string to_string(const Signature& what);

/// Precedes every payload on every transport. Trivially copyable; all ranks have the same byte order and layout (the
/// handshake checks the version).
struct MessageHeader {
  Signature what;
  std::int64_t bytes = 0;     ///< of payload
  std::int64_t ready_ns = 0;  ///< link model: steady-clock time before which it has not arrived; 0 without one
};
inline constexpr std::uint32_t kProtocolVersion = 1;

/// Do all fields have values that exist? What comes from another process is looked at with this first.
bool is_valid(const MessageHeader& header) noexcept;

}  // namespace lamina::comm
