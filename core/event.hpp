// Queue and Event: the order of work on a device. A Queue runs what is put on it in order, possibly later and on
// another thread; an Event is a point in a queue's order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lamina/core/ref.hpp"

namespace lamina {

class Queue;

/// A point in a queue's order; the default event has always passed. A value; thread-safe.
class Event {
 public:
  Event() = default;
  Event(Ref<Queue> queue, std::uint64_t ticket) : queue_(std::move(queue)), ticket_(ticket) {}

  const Queue* queue() const noexcept { return queue_.get(); }
  std::uint64_t ticket() const noexcept { return ticket_; }
  /// True when everything before the event has run.
  bool passed() const;
  /// Blocks until then. Throws what the queue's work threw, once; the queue stays usable.
  void wait() const;

 private:
  Ref<Queue> queue_;
  std::uint64_t ticket_ = 0;
};

/// One in-order stream of work. Implemented by each device backend. All members are thread-safe.
class Queue : public Counted {
 public:
  /// True when work is done by the time the call that issued it returns (the CPU).
  virtual bool synchronous() const noexcept = 0;
  /// The event after everything put on the queue so far.
  virtual Event record() = 0;
  /// Work put on this queue from now on starts after `event` has passed. Does not block the caller.
  virtual void wait_for(const Event& event) = 0;
  /// True when the ticket's event has passed.
  virtual bool passed(std::uint64_t ticket) const = 0;
  /// Blocks until then and throws the first failure since the last throw.
  virtual void wait(std::uint64_t ticket) = 0;

  /// Copies and fills, in the queue's order. Host memory given to copy_in has been read when the call returns;
  /// copy_out blocks until the bytes are there.
  virtual void copy_in(void* device, const void* host, std::size_t bytes) = 0;
  virtual void copy_out(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill_zero(void* device, std::size_t bytes) = 0;

  /// Blocks until everything put on the queue so far has run.
  void synchronize() { record().wait(); }
};

inline bool Event::passed() const { return !queue_ || queue_->passed(ticket_); }
inline void Event::wait() const {
  if (queue_) queue_->wait(ticket_);
}

}  // namespace lamina
