// Memory that tells when a kernel leaves its operands: bands that are compared afterwards, and pages that fault.
#pragma once

#include "tests/ops/array.hpp"

namespace lamina::harness {

/// A copy of an array in a device's memory, between two bands of one byte value. The data is aligned to 64.
class Banded {
 public:
  Banded(const Device& device, const Array& array, int band);
  /// The device's address.
  std::byte* data() { return memory_.raw() + kBand; }
  /// Nothing, or the offset in bytes (from the data's start) of the first band byte that changed.
  std::optional<std::int64_t> stray_write() const;
  Array contents() const;

 private:
  static constexpr std::size_t kBand = 512;
  Tensor memory_;
  Meta meta_;
  std::size_t bytes_;
  std::byte band_;
};

/// A copy of an array that ends (or starts) at a page nobody may touch.
class Paged {
 public:
  enum class At { front, back };
  Paged(const Array& array, At at);
  ~Paged();
  Paged(const Paged&) = delete;
  Paged& operator=(const Paged&) = delete;
  std::byte* data() { return data_; }
  Array contents() const;

 private:
  Meta meta_;
  std::size_t bytes_, mapped_;
  std::byte* base_;
  std::byte* data_;
};

/// Runs f on this thread. True when it touched memory it may not; what it held is then leaked. Exceptions pass.
bool faults(void (*f)(void*), void* argument);
template <class F>
bool faults(F&& f) {
  return faults([](void* p) { (*static_cast<std::remove_reference_t<F>*>(p))(); }, &f);
}

}  // namespace lamina::harness
