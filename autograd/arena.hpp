// Arena: where a tape's nodes live. Memory comes in chunks that a thread keeps for its next tapes, because a tape a
// step that gave them back to the system would pay a page fault for every few nodes. Thread-safety: an arena belongs to
// one thread at a time and may end on another one than it began on.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace lamina {

class Arena {
 public:
  Arena() = default;
  Arena(Arena&& other) noexcept
      : chunks_(std::exchange(other.chunks_, nullptr)),
        next_(std::exchange(other.next_, nullptr)),
        end_(std::exchange(other.end_, nullptr)) {}
  Arena& operator=(Arena&& other) noexcept {
    std::swap(chunks_, other.chunks_);
    std::swap(next_, other.next_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~Arena();

  /// Uninitialised memory, valid until the arena ends; `align` at most that of max_align_t. Throws std::bad_alloc.
  void* allocate(std::size_t bytes, std::size_t align) {
    void* at = next_;
    std::size_t space = static_cast<std::size_t>(end_ - next_);
    if (next_ == nullptr || std::align(align, bytes, at, space) == nullptr) at = grow(bytes);
    next_ = static_cast<std::byte*>(at) + bytes;
    return at;
  }
  /// `count` default-constructed items, which their owner destroys; null for none.
  template <class T>
  T* array(std::size_t count) {
    if (count == 0) return nullptr;
    T* items = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    std::uninitialized_value_construct_n(items, count);
    return items;
  }

  struct Chunk;

 private:
  void* grow(std::size_t bytes);

  Chunk* chunks_ = nullptr;
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
};

}  // namespace lamina
