// The kinds of device that tests run on. A further kind is one more line in device_kinds().
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/example/device.hpp"

namespace lamina::test {

struct DeviceKind {
  std::string_view name;  ///< as Device::kind()
  /// One of three devices of the kind, `which` from 0 to 2, that have to give the same bits though they are not alike:
  /// by threads on the CPU, by delays on the example device. `memory_limit` in bytes; 0 = none.
  Device (*make)(int which, std::int64_t memory_limit);
  /// True when it lacks kernels: what needs one of those is passed over.
  bool partial = false;
};

inline Device make_cpu(int which, std::int64_t memory_limit) {
  constexpr int threads[] = {1, 2, 7};
  constexpr std::string_view names[] = {"1 thread", "2 threads", "7 threads"};
  return cpu_device({.threads = threads[which],
                     .name = std::string(names[which]),
                     .memory_limit = memory_limit,
                     .poison_memory = which == 0});
}

inline Device make_example(int which, std::int64_t memory_limit) {
  constexpr int delays_us[] = {0, 5, 200};
  return example_device({.name = "delays of " + std::to_string(delays_us[which]) + " us",
                         .memory_limit = memory_limit,
                         .max_delay_us = delays_us[which],
                         .seed = static_cast<std::uint64_t>(which)});
}

/// The kinds present on this machine, the CPU first.
inline const std::vector<DeviceKind>& device_kinds() {
  static const std::vector<DeviceKind> kinds{
      {.name = "cpu", .make = make_cpu},
      {.name = "example", .make = make_example},
  };
  return kinds;
}

}  // namespace lamina::test
