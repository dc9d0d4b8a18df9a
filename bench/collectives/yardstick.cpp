// What shared memory allows to two processes: each copies its vector in, adds up one half, and copies the result out.
// No messages, no third rank, no errors: a bound to aim at, not a peer.
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "timing.hpp"

namespace {

struct alignas(128) Flag {
  std::atomic<unsigned long> epoch{0};
};

void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof set, &set);
}

}  // namespace

int main() {
  const std::size_t most = bench::sizes().back();
  void* memory = mmap(nullptr, 4096 + 2 * most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  Flag* const flags = new (memory) Flag[2];
  float* const shared[2] = {reinterpret_cast<float*>(static_cast<char*>(memory) + 4096),
                            reinterpret_cast<float*>(static_cast<char*>(memory) + 4096 + most)};
  const int rank = fork() == 0 ? 1 : 0;
  pin(rank);
  unsigned long epoch = 0;
  auto barrier = [&] {
    flags[rank].epoch.store(++epoch, std::memory_order_release);
    while (flags[1 - rank].epoch.load(std::memory_order_acquire) < epoch) {
      __builtin_ia32_pause();
    }
  };
  for (const std::size_t bytes : bench::sizes()) {
    std::vector<float> own(bytes / sizeof(float), 1.0f / 3);
    const std::size_t half = own.size() / 2;
    const double ms = bench::time_size(bytes, barrier, [&] {
      std::memcpy(shared[rank], own.data(), bytes);
      barrier();
      float* const a = shared[0] + static_cast<std::size_t>(rank) * half;
      const float* const b = shared[1] + static_cast<std::size_t>(rank) * half;
      for (std::size_t i = 0; i < half; ++i) a[i] += b[i];
      barrier();
      std::memcpy(own.data(), shared[0], bytes);
      // Nobody may begin the next one before everybody is out.
      barrier();
    });
    if (rank == 0) bench::print_row(bytes, ms);
  }
  if (rank == 0) {
    while (wait(nullptr) > 0) {
    }
  }
  return 0;
}
