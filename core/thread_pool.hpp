// ThreadPool: the engine's own Executor. Workers are started by the first parallel run and sleep when idle: they
// spin for at most `spin_us` after their last block. Usable from several threads at once (one run at a time has the
// workers, the others run on their callers). After fork() the child runs everything on its calling thread.
#pragma once

#include <memory>

#include "lamina/core/executor.hpp"

namespace lamina {

class ThreadPool final : public Executor {
 public:
  /// `threads` >= 1 counts the caller: ThreadPool(1) starts no thread. Throws ValueError otherwise.
  explicit ThreadPool(int threads, int spin_us = 30);
  ~ThreadPool() override;

  int width() const noexcept override { return threads_; }
  void run(std::int64_t count, BlockFunction block) override;

 private:
  struct State;
  int threads_;
  std::unique_ptr<State> state_;
};

/// Number of CPUs this process may run on (its affinity mask), at least 1.
int available_cpus() noexcept;

}  // namespace lamina
