// The example device: a complete backend in two hundred lines, and an honest one. It has its own memory (the host may
// not follow its pointers), queue threads (work is really asynchronous, and fails at the wait), and the naive
// references as kernels. docs/add-a-device.md walks through it; tests use it to show what an asynchronous device would
// do to code that forgets to wait.
#pragma once

#include <cstdint>
#include <string>

#include "lamina/core/device.hpp"

namespace lamina {

struct ExampleOptions {
  std::string name = "example";
  std::int64_t memory_limit = 0;  ///< bytes; 0 = none
  int max_delay_us = 0;           ///< each task sleeps a random time up to this before it runs
  std::uint64_t seed = 0;         ///< of the delays
  bool wait_for_events = true;    ///< false plants a fault: queues do not wait for each other
};

/// A new device. Its queues' failures surface at the wait: Device::synchronize, to_vector, to() a host device.
Device example_device(ExampleOptions options = {});

}  // namespace lamina
