// What all programs of this folder share: sizes, repetitions, and the row they print a size.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <vector>

namespace bench {

inline std::vector<std::size_t> sizes() {
  return {4096,
          16384,
          65536,
          262144,
          std::size_t{1} << 20,
          std::size_t{4} << 20,
          std::size_t{16} << 20,
          std::size_t{64} << 20};
}

/// The median in milliseconds, as this rank saw it; every repetition begins together.
template <class Barrier, class Run>
double time_size(std::size_t bytes, Barrier&& barrier, Run&& run) {
  const int repeats = bytes <= 65536                     ? 100
                      : bytes <= (std::size_t{1} << 20)  ? 40
                      : bytes <= (std::size_t{16} << 20) ? 9
                                                         : 5;
  std::vector<double> ms;
  for (int i = 0; i < repeats + 3; ++i) {
    barrier();
    const auto begin = std::chrono::steady_clock::now();
    run();
    if (i >= 3)
      ms.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(ms.begin(), ms.end());
  return ms[ms.size() / 2];
}

/// A row as bench/against.py reads it.
inline void print_row(std::size_t bytes, double ms) {
  std::printf("all_reduce %zu %.4f ms\n", bytes, ms);
  std::fflush(stdout);
}

}  // namespace bench
