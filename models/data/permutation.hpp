// Permutation: a random order of 0..n-1 of which nothing is stored, so that any place in an epoch can be gone to at
// once. A Feistel network on the smallest even number of bits that holds n, applied again while it leads outside.
// A value; pure; thread-safe.
#pragma once

#include <bit>
#include <cstdint>

#include "lamina/core/rng.hpp"

namespace lamina {

class Permutation {
 public:
  /// Of 0..n-1, n >= 1, in the order that `rng` gives.
  constexpr Permutation(std::uint64_t n, const Rng& rng) noexcept
      : n_(n),
        half_(static_cast<int>((std::bit_width(n - 1) + 1) / 2)),
        mask_((std::uint64_t{1} << half_) - 1),
        rng_(rng) {}

  /// What stands at `place`, 0 <= place < n.
  constexpr std::uint64_t operator()(std::uint64_t place) const noexcept {
    if (n_ < 2) return place;
    // The network permutes 4^half_ < 4n numbers, so this takes under 4 steps on average; it ends because following a
    // permutation from inside [0, n) returns there.
    do {
      place = once(place);
    } while (place >= n_);
    return place;
  }

 private:
  static constexpr std::uint64_t kRounds = 8;

  constexpr std::uint64_t once(std::uint64_t x) const noexcept {
    std::uint64_t left = x >> half_;
    std::uint64_t right = x & mask_;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const std::uint64_t next = left ^ (rng_.quad(round, right)[0] & mask_);
      left = right;
      right = next;
    }
    return (left << half_) | right;
  }

  std::uint64_t n_;
  int half_;  // bits of each half; at most 32
  std::uint64_t mask_;
  Rng rng_;
};

}  // namespace lamina
