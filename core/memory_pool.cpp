#include "lamina/core/memory_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lamina/core/error.hpp"

namespace lamina {

MemoryPool::MemoryPool(MemorySource& source, Options options) : source_(source), options_(options) {}

MemoryPool::~MemoryPool() {
  std::lock_guard lock(mutex_);
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

MemoryPool::Block MemoryPool::take_cached(std::size_t size, const Queue* queue) {
  const auto it = free_.find({queue, size});
  if (it == free_.end() || it->second.blocks.empty()) return {};
  Block block{it->second.blocks.back(), size};
  it->second.blocks.pop_back();
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
  std::lock_guard lock(mutex_);
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
      fail<OutOfMemory>("memory pool", "{} bytes cannot be allocated; live {}, cached {}, pending {}, limit {}", size,
                        stats_.live_bytes, stats_.cached_bytes, stats_.pending_bytes, options_.limit_bytes);
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
  std::lock_guard lock(mutex_);
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

void MemoryPool::keep_free(Block block, const Queue* queue) {
  if (options_.cache) {
    free_[{queue, block.bytes}].blocks.push_back(block.data);
    stats_.cached_bytes += static_cast<std::int64_t>(block.bytes);
  } else {
    source_.release(block.data, block.bytes);
  }
}

MemoryStats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryPool::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak_bytes = stats_.live_bytes;
}

void MemoryPool::trim() noexcept {
  std::lock_guard lock(mutex_);
  trim_locked();
}

void MemoryPool::trim_locked() noexcept {
  for (auto& [key, list] : free_) {
    for (void* data : list.blocks) {
      source_.release(data, key.second);
      stats_.cached_bytes -= static_cast<std::int64_t>(key.second);
    }
    list.blocks.clear();
  }
}

}  // namespace lamina
