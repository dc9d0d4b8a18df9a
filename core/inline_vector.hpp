// InlineVector: a vector whose first N elements live in the object, so that operand and shape lists of ordinary ops
// never touch the heap. Grows on the heap beyond N. Not thread-safe.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace lamina {

template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;

  InlineVector() noexcept : data_(inline_data()) {}
  explicit InlineVector(std::size_t count) : InlineVector() {
    reserve(count);
    while (size_ < count) emplace_back();
  }
  InlineVector(std::initializer_list<T> items) : InlineVector() { append(items.begin(), items.end()); }
  explicit InlineVector(std::span<const T> items) : InlineVector() { append(items.begin(), items.end()); }
  InlineVector(const InlineVector& other) : InlineVector() { append(other.begin(), other.end()); }
  InlineVector(InlineVector&& other) noexcept : InlineVector() { steal(std::move(other)); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      clear();
      release_heap();
      steal(std::move(other));
    }
    return *this;
  }
  ~InlineVector() {
    clear();
    release_heap();
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  T& front() noexcept { return data_[0]; }
  const T& front() const noexcept { return data_[0]; }
  T& back() noexcept { return data_[size_ - 1]; }
  const T& back() const noexcept { return data_[size_ - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* larger = std::allocator<T>{}.allocate(capacity);
    try {
      std::uninitialized_move(begin(), end(), larger);
    } catch (...) {
      std::allocator<T>{}.deallocate(larger, capacity);
      throw;
    }
    std::destroy(begin(), end());
    release_heap();
    data_ = larger;
    capacity_ = capacity;
  }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) {
      T item(std::forward<Args>(args)...);  // an argument may live in this vector
      reserve(2 * capacity_);
      ::new (data_ + size_) T(std::move(item));
    } else {
      ::new (data_ + size_) T(std::forward<Args>(args)...);
    }
    return data_[size_++];  // counted only once it lives
  }
  void push_back(const T& item) { emplace_back(item); }
  void push_back(T&& item) { emplace_back(std::move(item)); }
  void clear() noexcept {
    std::destroy(begin(), end());
    size_ = 0;
  }
  void resize(std::size_t count) {
    reserve(count);
    while (size_ < count) emplace_back();
    while (size_ > count) std::destroy_at(data_ + --size_);
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  template <class It>
  void append(It first, It last) {
    reserve(size_ + static_cast<std::size_t>(last - first));
    for (; first != last; ++first) emplace_back(*first);
  }
  void release_heap() noexcept {
    if (data_ != inline_data()) std::allocator<T>{}.deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
  }
  void steal(InlineVector&& other) noexcept {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move(other.begin(), other.end(), data_);
      size_ = other.size_;
      other.clear();
    }
  }

  T* data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace lamina
