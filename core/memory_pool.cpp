#include "lamina/core/memory_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>

#include "lamina/core/error.hpp"

namespace lamina {

MemoryPool::MemoryPool(MemorySource& source, Options options) : source_(source), options_(options) {}

MemoryPool::~MemoryPool() {
  std::lock_guard guard(lock_);
  try {
    collect_pending(true);
  } catch (...) {  // a queue's failure belongs to whoever waits for it, not to the pool's end
  }
  trim_locked();
}

std::size_t MemoryPool::class_size(std::size_t bytes) noexcept {
  if (bytes <= 64) return 64;
  const std::size_t octave = std::bit_floor(bytes - 1);  // bytes lies in (octave, 2 * octave]
  const std::size_t step = std::max<std::size_t>(octave / 8, 64);
  return (bytes + step - 1) / step * step;
}

std::size_t MemoryPool::class_index(std::size_t size) noexcept {
  // Multiples of 64 up to 512, then 8 classes an octave.
  if (size <= 512) return size / 64;
  const auto octave = static_cast<std::size_t>(std::bit_width(size - 1)) - 1;
  return 9 + (octave - 9) * 8 + (((size - 1) >> (octave - 3)) & 7);
}

MemoryPool::FreeLists& MemoryPool::lists_of(const Queue* queue) {
  for (FreeLists& lists : free_) {
    if (lists.queue == queue) return lists;
  }
  return free_.emplace_back(FreeLists{queue, {}});
}

MemoryPool::Block MemoryPool::take_cached(std::size_t size, const Queue* queue) {
  std::vector<std::vector<Block>>& lists = lists_of(queue).of_class;
  const std::size_t index = class_index(size);
  if (index >= lists.size() || lists[index].empty()) return {};
  const Block block = lists[index].back();
  lists[index].pop_back();
  stats_.cached_bytes -= static_cast<std::int64_t>(size);
  return block;
}

void MemoryPool::collect_pending(bool wait) {
  std::erase_if(pending_, [&](Pending& p) {
    for (const Event& use : p.uses) {
      if (wait) {
        try {
          use.wait();
        } catch (...) {  // reported to those who wait for the result
        }
      } else if (!use.passed()) {
        return false;
      }
    }
    stats_.pending_bytes -= static_cast<std::int64_t>(p.block.bytes);
    keep_free(p.block, p.queue);
    return true;
  });
}

MemoryPool::Block MemoryPool::allocate(std::size_t bytes, const Queue* queue) {
  if (bytes > (std::size_t{1} << 62)) fail<OutOfMemory>("memory pool", "{} bytes cannot be allocated", bytes);
  const std::size_t size = class_size(bytes);
  const auto signed_size = static_cast<std::int64_t>(size);
  std::lock_guard guard(lock_);
  if (!pending_.empty()) collect_pending(false);
  Block block = take_cached(size, queue);
  if (block.data == nullptr) {
    auto from_source = [&] {
      const std::int64_t held = stats_.live_bytes + stats_.cached_bytes + stats_.pending_bytes;
      if (options_.limit_bytes > 0 && held + signed_size > options_.limit_bytes) return;
      block = {source_.allocate(size), size};
      if (block.data != nullptr) ++stats_.system_calls;
    };
    from_source();
    if (block.data == nullptr) {
      collect_pending(true);
      block = take_cached(size, queue);
    }
    if (block.data == nullptr) {
      trim_locked();
      from_source();
    }
    if (block.data == nullptr) {
      fail<OutOfMemory>("memory pool", "{} bytes cannot be allocated; live {}, cached {}, pending {}, {}", size,
                        stats_.live_bytes, stats_.cached_bytes, stats_.pending_bytes,
                        options_.limit_bytes > 0 ? fmt::format("limit {}", options_.limit_bytes)
                                                 : std::string("no limit set: the system has no more"));
    }
  }
  ++stats_.allocations;
  stats_.live_bytes += signed_size;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.live_bytes);
  if (options_.poison) std::memset(block.data, 0xFF, size);
  return block;
}

void MemoryPool::release(Block block, const Queue* queue, std::span<const Event> uses) noexcept {
  const auto size = static_cast<std::int64_t>(block.bytes);
  std::lock_guard guard(lock_);
  stats_.live_bytes -= size;
  bool in_use = false;
  for (const Event& use : uses) in_use = in_use || !use.passed();
  if (in_use) {
    stats_.pending_bytes += size;
    pending_.push_back({block, queue, {uses.begin(), uses.end()}});
  } else {
    keep_free(block, queue);
  }
}

void MemoryPool::keep_free(Block block, const Queue* queue) noexcept {
  if (options_.cache) {
    try {
      std::vector<std::vector<Block>>& lists = lists_of(queue).of_class;
      const std::size_t index = class_index(block.bytes);
      if (index >= lists.size()) lists.resize(index + 1);
      lists[index].push_back(block);
      stats_.cached_bytes += static_cast<std::int64_t>(block.bytes);
      return;
    } catch (const std::bad_alloc&) {  // no room for the list
    }
  }
  source_.release(block.data, block.bytes);
}

MemoryStats MemoryPool::stats() const {
  std::lock_guard guard(lock_);
  return stats_;
}

void MemoryPool::reset_peak() {
  std::lock_guard guard(lock_);
  stats_.peak_bytes = stats_.live_bytes;
}

void MemoryPool::trim() noexcept {
  std::lock_guard guard(lock_);
  trim_locked();
}

void MemoryPool::trim_locked() noexcept {
  for (FreeLists& lists : free_) {
    for (std::vector<Block>& blocks : lists.of_class) {
      for (const Block& block : blocks) {
        source_.release(block.data, block.bytes);
        stats_.cached_bytes -= static_cast<std::int64_t>(block.bytes);
      }
      blocks.clear();
    }
  }
}

}  // namespace lamina
