// How much memory this process can still get before the machine swaps or somebody ends it.
#pragma once

#include <cstdint>

namespace lamina {

/// Bytes: the least of what the machine has left (MemAvailable), what the memory control groups around this process
/// leave, their file caches counted as free, and what its own limit on address space leaves. 2^63 - 1 where nothing is
/// known. A snapshot; reads a few small files. Thread-safe.
std::int64_t available_memory() noexcept;

}  // namespace lamina
