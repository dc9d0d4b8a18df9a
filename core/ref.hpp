// Intrusive reference counting. Sole ownership is a question the engine asks all the time ("may I write this in
// place?"), so the count is intrusive and read with acquire order: shared_ptr::use_count() would be a data race.
#pragma once

#include <atomic>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace lamina {

/// Base of everything held by Ref. Counts are atomic; the object itself has its own thread-safety.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  virtual ~Counted() = default;

  /// True when exactly one Ref is left; everything earlier owners did is visible to the caller.
  bool sole() const noexcept { return count_.load(std::memory_order_acquire) == 1; }
  /// Owners at this moment. For listings only: another thread may change it at once.
  int owners() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<int> count_{0};
};

template <class T>
class Ref {
 public:
  constexpr Ref() noexcept = default;
  constexpr Ref(std::nullptr_t) noexcept {}
  explicit Ref(T* object) noexcept : object_(object) { retain(); }
  Ref(const Ref& other) noexcept : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Ref(const Ref<U>& other) noexcept : object_(other.get()) {
    retain();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(); }

  /// The first handle on an object that nobody else has seen yet.
  static Ref first(T* object) noexcept {
    object->count_.store(1, std::memory_order_relaxed);
    Ref ref;
    ref.object_ = object;
    return ref;
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  void retain() const noexcept {
    if (object_ != nullptr) object_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() noexcept {
    if (object_ == nullptr) return;
    // The last owner needs no read-modify-write: nobody is left who could take another handle meanwhile.
    if (object_->sole() || object_->count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete object_;
  }

  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::first(new T(std::forward<Args>(args)...));
}

}  // namespace lamina
