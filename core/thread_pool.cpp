#include "lamina/core/thread_pool.hpp"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "lamina/core/error.hpp"

namespace lamina {

namespace {
thread_local bool inside_block = false;  // a nested run stays on its thread

struct InsideBlock {
  bool before = std::exchange(inside_block, true);
  ~InsideBlock() { inside_block = before; }
};
}  // namespace

struct ThreadPool::State {
  explicit State(int spin) : spin_us(spin), owner(getpid()) {}

  const int spin_us;
  const pid_t owner;

  std::mutex turn;  // held by the run that has the workers
  std::mutex mutex;
  std::condition_variable work_ready;
  std::condition_variable work_done;
  std::atomic<std::uint64_t> generation{0};
  bool stop = false;
  int active = 0;  // workers that joined the current run and have not left it

  // The current run. Written under `mutex` while no worker is active.
  const BlockFunction* block = nullptr;
  std::int64_t count = 0;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure;

  std::vector<std::thread> workers;

  // `f` is the caller's copy: the run's own pointer is cleared while late blocks still run.
  void drain(const BlockFunction& f, std::int64_t blocks) noexcept {
    InsideBlock guard;
    try {
      for (std::int64_t i = next.fetch_add(1); i < blocks; i = next.fetch_add(1)) f(i);
    } catch (...) {
      next.store(blocks);
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void work() {
    std::uint64_t seen = 0;
    for (;;) {
      const auto spin_until = std::chrono::steady_clock::now() + std::chrono::microseconds(spin_us);
      while (generation.load(std::memory_order_acquire) == seen && std::chrono::steady_clock::now() < spin_until) {
        __builtin_ia32_pause();
      }
      const BlockFunction* joined = nullptr;
      std::int64_t blocks = 0;
      {
        std::unique_lock lock(mutex);
        work_ready.wait(lock, [&] { return stop || generation.load() != seen; });
        if (stop) return;
        seen = generation.load();
        if (block == nullptr) continue;  // that run ended before this worker woke
        joined = block;
        blocks = count;
        ++active;
      }
      drain(*joined, blocks);
      std::lock_guard lock(mutex);
      if (--active == 0) work_done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads, int spin_us) : threads_(threads) {
  if (threads < 1 || threads > 4096) fail<ValueError>("thread pool", "{} threads; allowed: 1 to 4096", threads);
  state_ = std::make_unique<State>(spin_us);
}

ThreadPool::~ThreadPool() {
  if (getpid() != state_->owner) {
    // A forked child has no workers to join, and destroying what they slept on would wait for them for ever.
    [[maybe_unused]] State* leaked = state_.release();
    return;
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work_ready.notify_all();
  for (auto& worker : state_->workers) worker.join();
}

void ThreadPool::run(std::int64_t count, BlockFunction block) {
  State& s = *state_;
  std::unique_lock<std::mutex> turn;
  if (threads_ > 1 && count > 1 && !inside_block && getpid() == s.owner) {
    turn = std::unique_lock(s.turn, std::try_to_lock);
  }
  if (!turn.owns_lock()) {
    InsideBlock guard;
    for (std::int64_t i = 0; i < count; ++i) block(i);
    return;
  }
  if (s.workers.empty()) {
    try {
      for (int i = 1; i < threads_; ++i) s.workers.emplace_back([&s] { s.work(); });
    } catch (const std::system_error&) {  // the system has no more threads: fewer run the same blocks
    }
  }
  {
    std::lock_guard lock(s.mutex);
    s.block = &block;
    s.count = count;
    s.next.store(0);
    s.failure = nullptr;
    s.generation.fetch_add(1, std::memory_order_release);
  }
  s.work_ready.notify_all();
  s.drain(block, count);
  std::exception_ptr failure;
  {
    std::unique_lock lock(s.mutex);
    // Workers that have not joined by now find the block gone and go back to sleep.
    s.block = nullptr;
    s.work_done.wait(lock, [&] { return s.active == 0; });
    failure = std::exchange(s.failure, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

int available_cpus() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int n = CPU_COUNT(&set);
  return n > 0 ? n : 1;
}

}  // namespace lamina
