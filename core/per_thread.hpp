// PerThread: one T a thread, for figures that every thread adds to all the time: a thread finds its own without a lock
// and writes it without a read-modify-write.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

namespace lamina {

/// T is default-constructible; what its owner writes and others read is atomic. Thread-safe.
template <class T>
class PerThread {
 public:
  PerThread() : id_(next_id().fetch_add(1, std::memory_order_relaxed)) {}
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;

  /// The calling thread's. Lives as long as this; a thread that takes over an ended one's id goes on with its T.
  T& local() {
    Known& known = recent[id_ % recent.size()];
    if (known.id != id_) [[unlikely]]
      known = {id_, find()};
    return *known.item;
  }
  /// Calls f with every thread's.
  template <class F>
  void for_each(F&& f) const {
    std::lock_guard guard(mutex_);
    for (const Owned& owned : items_) f(owned.item);
  }

 private:
  struct alignas(64) Owned {  // a cache line of its own
    std::thread::id thread;
    T item{};
  };
  struct Known {
    std::uint64_t id = 0;
    T* item = nullptr;
  };
  static std::atomic<std::uint64_t>& next_id() {
    static std::atomic<std::uint64_t> next{1};  // ids are never used twice, so that what a thread knows cannot go stale
    return next;
  }
  T* find() {
    std::lock_guard guard(mutex_);
    for (Owned& owned : items_) {
      if (owned.thread == std::this_thread::get_id()) return &owned.item;
    }
    Owned& fresh = items_.emplace_back();
    fresh.thread = std::this_thread::get_id();
    return &fresh.item;
  }

  static inline thread_local constinit std::array<Known, 4> recent{};
  const std::uint64_t id_;
  mutable std::mutex mutex_;
  std::deque<Owned> items_;
};

}  // namespace lamina
