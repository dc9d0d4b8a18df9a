// Delivery: where the bytes of one arriving message go: into a buffer, or through a reduction.
#pragma once

#include <array>

#include "lamina/dist/comm/buffer.hpp"
#include "lamina/dist/comm/plan.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

class Delivery final : public Incoming {
 public:
  Delivery() = default;
  /// `own` is read by a reduction only. `by`: what a final element is divided by; 1 for none.
  Delivery(const Step& step, const ConstBuffer& own, const Buffer& to, Reduction reduction, double by)
      : step_(&step), own_(&own), to_(&to), reduction_(reduction), by_(by) {}

  std::int64_t left() const noexcept override;
  std::span<std::byte> writable() noexcept override;
  void wrote(std::size_t bytes) override { done_ += static_cast<std::int64_t>(bytes); }
  void take(std::span<const std::byte> bytes) override;

 private:
  void reduce_elements(const std::byte* theirs, std::int64_t count);

  const Step* step_ = nullptr;
  const ConstBuffer* own_ = nullptr;
  const Buffer* to_ = nullptr;
  Reduction reduction_ = Reduction::sum;
  double by_ = 1;
  std::int64_t done_ = 0;            // bytes
  std::array<std::byte, 8> part_{};  // of an element that came in pieces
};

}  // namespace lamina::comm
