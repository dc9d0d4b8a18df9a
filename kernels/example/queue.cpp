#include "lamina/kernels/example/queue.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace lamina {

ExampleQueue::ExampleQueue(const ExampleOptions& options, std::shared_ptr<ExampleQueues> queues)
    : options_(options), queues_(std::move(queues)), delays_(options.seed) {
  {
    std::lock_guard lock(queues_->mutex);
    queues_->living.push_back(this);
  }
  thread_ = std::thread([this] { work(); });
}

ExampleQueue::~ExampleQueue() {
  {
    std::lock_guard lock(queues_->mutex);
    std::erase(queues_->living, this);
  }
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ExampleQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    const std::uint64_t number = finished_;
    lock.unlock();
    if (options_.max_delay_us > 0) {
      const auto most = static_cast<std::uint64_t>(options_.max_delay_us) + 1;
      std::this_thread::sleep_for(std::chrono::microseconds(delays_.below(most, 0, number)));
    }
    std::exception_ptr failure;
    try {
      task();
    } catch (...) {
      failure = std::current_exception();
    }
    task = nullptr;  // what it holds is let go before anybody is told
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    ++finished_;
    changed_.notify_all();
  }
}

void ExampleQueue::submit(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++submitted_;
  }
  changed_.notify_all();
}

Event ExampleQueue::record() {
  std::lock_guard lock(mutex_);
  return Event(Ref<Queue>(this), submitted_);
}

void ExampleQueue::wait_for(const Event& event) {
  if (event.queue() == nullptr || event.queue() == this || !options_.wait_for_events) return;
  submit([event] {
    // Only the order matters here: the failure is for those who wait for the result.
    while (!event.passed()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  });
}

bool ExampleQueue::passed(std::uint64_t ticket) const {
  std::lock_guard lock(mutex_);
  return finished_ >= ticket;
}

void ExampleQueue::wait(std::uint64_t ticket) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ >= ticket; });
  if (std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void ExampleQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_.empty() && finished_ == submitted_; });
}

void ExampleQueue::copy_in(void* device, const void* host, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(host);
  submit([device, staged = std::vector<std::byte>(first, first + bytes)] {
    if (!staged.empty()) std::memcpy(device, staged.data(), staged.size());
  });
}

void ExampleQueue::copy_out(void* host, const void* device, std::size_t bytes) {
  submit([host, device, bytes] { std::memcpy(host, device, bytes); });
  record().wait();
}

void ExampleQueue::copy(void* to, const void* from, std::size_t bytes) {
  submit([to, from, bytes] { std::memcpy(to, from, bytes); });
}

void ExampleQueue::fill_zero(void* device, std::size_t bytes) {
  submit([device, bytes] { std::memset(device, 0, bytes); });
}

}  // namespace lamina
