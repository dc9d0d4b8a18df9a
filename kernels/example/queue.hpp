// The example device's queue: one thread that runs tasks in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lamina/core/event.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/kernels/example/device.hpp"

namespace lamina {

class ExampleQueue;

/// The living queues of one device, so that memory can be given back only when none of them uses it.
struct ExampleQueues {
  std::mutex mutex;
  std::vector<ExampleQueue*> living;
};

class ExampleQueue final : public Queue {
 public:
  ExampleQueue(const ExampleOptions& options, std::shared_ptr<ExampleQueues> queues);
  /// Runs what is left, then ends the thread.
  ~ExampleQueue() override;

  bool synchronous() const noexcept override { return false; }
  Event record() override;
  void wait_for(const Event& event) override;
  bool passed(std::uint64_t ticket) const override;
  void wait(std::uint64_t ticket) override;
  void copy_in(void* device, const void* host, std::size_t bytes) override;
  void copy_out(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void fill_zero(void* device, std::size_t bytes) override;

  /// Puts a task on the queue. What it throws is kept for the next wait; later tasks run all the same.
  void submit(std::function<void()> task);
  /// Blocks until the queue is empty; leaves a failure for those who wait for a result.
  void drain();

 private:
  void work();

  const ExampleOptions options_;
  const std::shared_ptr<ExampleQueues> queues_;
  const Rng delays_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::uint64_t submitted_ = 0;  // also the newest ticket
  std::uint64_t finished_ = 0;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace lamina
