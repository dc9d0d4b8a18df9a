// MemoryPool: the caching allocator of a device. Freed blocks are kept in size classes (at most 64 bytes or 12.5 %
// larger than asked) and handed out again, because returning memory to the system after each op costs more than most
// ops. Blocks freed while another queue may still use them stay pending until that queue has passed the events given.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lamina/core/event.hpp"
#include "lamina/core/spin_lock.hpp"

namespace lamina {

/// Where a pool gets its memory from. allocate() returns nullptr when there is no more.
class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::size_t bytes) = 0;
  /// Work already put on a queue of the device may still use the block: an asynchronous source waits for it.
  virtual void release(void* data, std::size_t bytes) noexcept = 0;
};

struct MemoryStats {
  std::int64_t live_bytes = 0;     ///< handed out now (size classes)
  std::int64_t peak_bytes = 0;     ///< highest live_bytes since the last reset_peak()
  std::int64_t cached_bytes = 0;   ///< free, kept for reuse
  std::int64_t pending_bytes = 0;  ///< freed, waiting for an event of another queue
  std::int64_t allocations = 0;    ///< blocks handed out so far
  std::int64_t system_calls = 0;   ///< of those, taken from the source
};

class MemoryPool {
 public:
  struct Block {
    void* data = nullptr;
    std::size_t bytes = 0;  ///< the class size
  };
  struct Options {
    std::int64_t limit_bytes = 0;  ///< live + cached + pending may not exceed it; 0 = no limit
    bool cache = true;             ///< false: every block goes back to the source (for tests)
    bool poison = false;           ///< fill every block handed out with 0xFF (NaN in every float type)
  };

  MemoryPool(MemorySource& source, Options options);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// At least `bytes` bytes, aligned to 64. Throws OutOfMemory with the four figures after cached blocks were given
  /// back and pending ones waited for. `queue` is the queue the block will be used on.
  Block allocate(std::size_t bytes, const Queue* queue);
  /// Gives a block back. It is handed out again to `queue` at once, to nobody else, and only after `uses` are done.
  void release(Block block, const Queue* queue, std::span<const Event> uses) noexcept;

  MemoryStats stats() const;
  void reset_peak();
  /// Returns every cached block to the source.
  void trim() noexcept;

  /// The class size that serves `bytes`.
  static std::size_t class_size(std::size_t bytes) noexcept;
  /// A small number for each class size.
  static std::size_t class_index(std::size_t size) noexcept;

 private:
  struct Pending {
    Block block;
    const Queue* queue;
    std::vector<Event> uses;
  };
  /// The free blocks of one queue, by class.
  struct FreeLists {
    const Queue* queue;
    std::vector<std::vector<Block>> of_class;
  };
  FreeLists& lists_of(const Queue* queue);
  Block take_cached(std::size_t size, const Queue* queue);
  void keep_free(Block block, const Queue* queue) noexcept;
  void collect_pending(bool wait);
  void trim_locked() noexcept;

  MemorySource& source_;
  const Options options_;
  mutable SpinLock lock_;
  std::vector<FreeLists> free_;  // a device has few queues
  std::vector<Pending> pending_;
  MemoryStats stats_;
};

}  // namespace lamina
