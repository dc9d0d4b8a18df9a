// Rng: counter-based random numbers, Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
// A number is a pure function of (seed, layer, step, example id in the run, element within the example), so bits are
// the same for every thread count, grid, device, micro-batch split and replica count. Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace lamina {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// Ten rounds of Philox4x32.
constexpr PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey k) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

/// Uniform in [0, 1) with 24 bits: exactly representable in float.
constexpr float unit_float(std::uint32_t bits) noexcept { return static_cast<float>(bits >> 8) * 0x1p-24f; }

/// Mixes 64 bits (SplitMix64's finaliser); spreads small integers over the whole word.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// A stream of random numbers: key (seed, layer, step), counter (example, element).
class Rng {
 public:
  constexpr Rng() noexcept = default;
  constexpr Rng(std::uint64_t seed, std::uint64_t layer = 0, std::uint64_t step = 0) noexcept
      : key_(mix64(mix64(mix64(seed) ^ layer) ^ step)) {}

  constexpr PhiloxKey key() const noexcept {
    return {static_cast<std::uint32_t>(key_), static_cast<std::uint32_t>(key_ >> 32)};
  }
  /// The four words that hold elements 4*quad .. 4*quad+3 of an example.
  constexpr PhiloxCounter quad(std::uint64_t example, std::uint64_t quad) const noexcept {
    return philox4x32({static_cast<std::uint32_t>(quad), static_cast<std::uint32_t>(quad >> 32),
                       static_cast<std::uint32_t>(example), static_cast<std::uint32_t>(example >> 32)},
                      key());
  }
  constexpr std::uint32_t bits(std::uint64_t example, std::uint64_t element) const noexcept {
    return quad(example, element / 4)[element % 4];
  }
  /// Uniform in [0, 1).
  constexpr float uniform(std::uint64_t example, std::uint64_t element) const noexcept {
    return unit_float(bits(example, element));
  }
  /// Standard normal by Box-Muller in double; elements 2i and 2i+1 share a pair of words.
  double normal(std::uint64_t example, std::uint64_t element) const noexcept;
  /// Uniform in [0, n), n >= 1, from 64 random bits (bias below 2^-32 for n < 2^32).
  std::uint64_t below(std::uint64_t n, std::uint64_t example, std::uint64_t element) const noexcept;

 private:
  std::uint64_t key_ = mix64(0);
};

}  // namespace lamina
