// Scratch: memory a CPU kernel needs while it runs, from its device's pool: after the first call none of it comes from
// the system. Costs a lock and a look-up (well under 100 ns); blocks of a loop may each take their own.
#pragma once

#include <cstdint>

#include "lamina/core/memory_pool.hpp"

namespace lamina {

class Scratch {
 public:
  /// Uninitialised, aligned to 64 bytes. Throws OutOfMemory.
  Scratch(MemoryPool& pool, std::size_t bytes) : pool_(pool) {
    if (bytes > 0) block_ = pool.allocate(bytes, nullptr);
  }
  static Scratch of_doubles(MemoryPool& pool, std::int64_t count) {
    return Scratch(pool, static_cast<std::size_t>(count) * sizeof(double));
  }
  static Scratch of_floats(MemoryPool& pool, std::int64_t count) {
    return Scratch(pool, static_cast<std::size_t>(count) * sizeof(float));
  }
  ~Scratch() {
    if (block_.data != nullptr) pool_.release(block_, nullptr, {});
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  float* floats() const noexcept { return static_cast<float*>(block_.data); }
  double* doubles() const noexcept { return static_cast<double*>(block_.data); }
  std::int64_t* integers() const noexcept { return static_cast<std::int64_t*>(block_.data); }

 private:
  MemoryPool& pool_;
  MemoryPool::Block block_;
};

}  // namespace lamina
