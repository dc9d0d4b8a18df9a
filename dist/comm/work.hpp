// Work: a collective on its way. Thread-safety: one handle belongs to one thread at a time; copies may be waited for on
// several threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/message.hpp"

namespace lamina::comm {

class PlanRunner;
struct WorkState;

/// What a finished work took.
struct WorkTimes {
  std::chrono::steady_clock::time_point issued, started, finished;  ///< started: its first byte moved
  std::int64_t bytes_sent = 0;                                      ///< payload
};

class [[nodiscard]] Work {
 public:
  Work() = default;
  Work(std::shared_ptr<PlanRunner> runner, std::shared_ptr<WorkState> state)
      : runner_(std::move(runner)), state_(std::move(state)) {}

  /// Blocks until it is done, driving progress meanwhile. Throws what ended the group: PeerLost, Timeout, Mismatch; the
  /// output's contents are then unspecified, and nobody reads or writes the buffers any more.
  void wait();
  /// True when wait() would not block.
  bool done() const;
  /// Throws ValueError before it is done.
  WorkTimes times() const;
  bool valid() const noexcept { return state_ != nullptr; }

 private:
  std::shared_ptr<PlanRunner> runner_;
  std::shared_ptr<WorkState> state_;
};

}  // namespace lamina::comm
