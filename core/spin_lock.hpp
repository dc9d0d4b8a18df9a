// SpinLock: a lock for sections of a few dozen instructions, taken so often that the second read-modify-write of a
// std::mutex shows. Whoever waits long gives the processor away, so that a holder that was interrupted can go on.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace lamina {

/// Not recursive. Works with std::lock_guard.
class SpinLock {
 public:
  void lock() noexcept {
    while (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void wait() const noexcept {
    for (int tries = 0; held_.load(std::memory_order_relaxed); ++tries) {
      if (tries < 64) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
      } else if (tries < 256) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  std::atomic<bool> held_{false};
};

}  // namespace lamina
