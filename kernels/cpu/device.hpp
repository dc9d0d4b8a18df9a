// The CPU device. Work runs on the caller and its pool, and is done when the op returns.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lamina/core/device.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

struct CpuOptions {
  int threads = 0;                               ///< of the device's own pool; 0 = the CPUs of this process
  std::shared_ptr<Executor> executor = nullptr;  ///< the host's own pool instead; `threads` is then ignored
  std::string name = "cpu";
  std::int64_t memory_limit = 0;    ///< bytes; 0 = none. Beyond it ops throw OutOfMemory
  std::optional<Isa> max_isa = {};  ///< use nothing better; the environment's LAMINA_ISA when not set
  std::string kernels = {};         ///< variants to prefer, see KernelTable::prefer; else LAMINA_KERNELS
  bool cache_memory = true;
  bool poison_memory = false;  ///< fill new blocks with NaN
};

/// A new logical device with its own memory figures and threads. Throws ValueError for an option outside its range.
Device cpu_device(CpuOptions options = {});

}  // namespace lamina
