#include "lamina/core/rng.hpp"

#include <cmath>
#include <numbers>

namespace lamina {

double Rng::normal(std::uint64_t example, std::uint64_t element) const noexcept {
  const PhiloxCounter words = quad(example, element / 4);
  const std::size_t pair = (element % 4) / 2 * 2;
  const double u = (static_cast<double>(words[pair]) + 0.5) * 0x1p-32;
  const double angle = 2 * std::numbers::pi * (static_cast<double>(words[pair + 1]) * 0x1p-32);
  const double radius = std::sqrt(-2 * std::log(u));
  return radius * (element % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

std::uint64_t Rng::below(std::uint64_t n, std::uint64_t example, std::uint64_t element) const noexcept {
  const PhiloxCounter words = quad(example, element);
  const std::uint64_t r = (std::uint64_t{words[1]} << 32) | words[0];
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(r) * n) >> 64);
}

}  // namespace lamina
