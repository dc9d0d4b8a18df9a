// What benchmarks that print rows share: name, pass, milliseconds of processor time. bench/against.py reads them.
#pragma once

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string_view>
#include <vector>

#include "lamina/core/rng.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina {

/// The least processor time of f in calls that take `seconds` together.
template <class F>
double best(F f, double seconds) {
  auto now = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  f();
  double least = std::numeric_limits<double>::infinity(), spent = 0;
  while (spent < seconds) {
    const double start = now();
    f();
    const double took = now() - start;
    least = std::min(least, took);
    spent += took;
  }
  return least;
}

/// Prints a row; `work` counts what `unit` names.
inline void print_row(std::string_view name, std::string_view pass, double seconds, double work,
                      std::string_view unit) {
  fmt::print("{:16} {:12} {:9.3f} ms {:8.1f} {}\n", name, pass, seconds * 1e3, work / seconds * 1e-9, unit);
  std::fflush(stdout);
}

inline Tensor normal(const Device& device, const Shape& shape, std::uint64_t key) {
  const Rng rng(key);
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(rng.normal(0, i));
  return Tensor::from(device, shape, values);
}

}  // namespace lamina
