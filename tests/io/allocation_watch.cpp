#include "lamina/tests/io/allocation_watch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<bool> watching{false};
std::atomic<std::size_t> largest_seen{0};

void* allocate(std::size_t bytes) {
  if (watching.load(std::memory_order_relaxed)) {
    largest_seen.store(std::max(largest_seen.load(std::memory_order_relaxed), bytes), std::memory_order_relaxed);
  }
  void* data = std::malloc(std::max<std::size_t>(bytes, 1));
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }

namespace lamina::test {

AllocationWatch::AllocationWatch() noexcept {
  largest_seen = 0;
  watching = true;
}
AllocationWatch::~AllocationWatch() { watching = false; }
std::size_t AllocationWatch::largest() const noexcept { return largest_seen; }

}  // namespace lamina::test
