// AllocationWatch: the largest single allocation while it lives. One at a time, one thread.
#pragma once

#include <cstddef>

namespace lamina::test {

class AllocationWatch {
 public:
  AllocationWatch() noexcept;
  ~AllocationWatch();
  AllocationWatch(const AllocationWatch&) = delete;
  AllocationWatch& operator=(const AllocationWatch&) = delete;
  std::size_t largest() const noexcept;
};

}  // namespace lamina::test
