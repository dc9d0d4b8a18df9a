// Device: a handle on a place that computes. It owns its backend (how memory and queues work), its memory pool and its
// kernel table; there is no global or default device. Made by cpu_device() and its siblings in kernels/<backend>/.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "lamina/core/event.hpp"
#include "lamina/core/executor.hpp"
#include "lamina/core/memory_pool.hpp"
#include "lamina/core/per_thread.hpp"

namespace lamina {

class KernelTable;  // kernels/table.hpp; core only carries the pointer
class Trace;        // core/trace.hpp

/// What a backend implements to become a device: memory, queues, and where loops run.
class Backend : public MemorySource {
 public:
  /// "cpu", "example", "cuda", ...
  virtual std::string_view kind() const noexcept = 0;
  /// True when host code may follow a pointer into this device's memory.
  virtual bool host_accessible() const noexcept = 0;
  virtual Ref<Queue> make_queue() = 0;
  /// Runs the loops of host kernels.
  virtual Executor& executor() noexcept = 0;
  /// False for the device that only computes shapes: its tensors have no elements.
  virtual bool has_storage() const noexcept { return true; }
};

/// What was launched on a device since it was made. Costs are the op records' own.
struct DeviceCounts {
  std::int64_t launches = 0;
  std::int64_t flops = 0;
  std::int64_t bytes = 0;          ///< read + written
  std::int64_t layout_copies = 0;  ///< operands made dense for a kernel that wants them so
  std::int64_t updates_in_place = 0;
  std::int64_t updates_copied = 0;  ///< a parameter's old version was held by somebody else
};

/// Exact counts, kept a thread. Thread-safe.
class DeviceCounters {
 public:
  void add(const DeviceCounts& more) {
    Cell& cell = cells_.local();
    auto raise = [](std::atomic<std::int64_t>& to, std::int64_t by) {
      if (by != 0) to.store(to.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
    };
    raise(cell.launches, more.launches);
    raise(cell.flops, more.flops);
    raise(cell.bytes, more.bytes);
    raise(cell.layout_copies, more.layout_copies);
    raise(cell.updates_in_place, more.updates_in_place);
    raise(cell.updates_copied, more.updates_copied);
  }
  /// The sum over all threads; of what a thread adds meanwhile, part may be missing.
  DeviceCounts sum() const {
    DeviceCounts total;
    cells_.for_each([&](const Cell& cell) {
      total.launches += cell.launches.load(std::memory_order_relaxed);
      total.flops += cell.flops.load(std::memory_order_relaxed);
      total.bytes += cell.bytes.load(std::memory_order_relaxed);
      total.layout_copies += cell.layout_copies.load(std::memory_order_relaxed);
      total.updates_in_place += cell.updates_in_place.load(std::memory_order_relaxed);
      total.updates_copied += cell.updates_copied.load(std::memory_order_relaxed);
    });
    return total;
  }

 private:
  struct Cell {
    std::atomic<std::int64_t> launches{0}, flops{0}, bytes{0}, layout_copies{0}, updates_in_place{0}, updates_copied{0};
  };
  PerThread<Cell> cells_;
};

/// The part shared by all handles of one device. Thread-safe.
class DeviceState final : public Counted {
 public:
  DeviceState(std::unique_ptr<Backend> owned_backend, MemoryPool::Options pool_options,
              std::shared_ptr<const KernelTable> kernel_table, std::string device_name)
      : backend(std::move(owned_backend)),
        pool(*backend, pool_options),
        queue(backend->make_queue()),
        synchronous(queue->synchronous()),
        has_storage(backend->has_storage()),
        kernels(std::move(kernel_table)),
        name(std::move(device_name)) {}

  const std::unique_ptr<Backend> backend;
  MemoryPool pool;
  const Ref<Queue> queue;  ///< the default queue
  const bool synchronous;
  const bool has_storage;
  const std::shared_ptr<const KernelTable> kernels;
  const std::string name;
  DeviceCounters counters;
  /// When set, every launch leaves a span of its op. It must outlive its use here.
  std::atomic<Trace*> trace{nullptr};
};

/// A value handle: a device and the queue that work issued through this handle runs on. Copies are cheap; thread-safe.
class Device {
 public:
  Device() = default;
  explicit Device(Ref<DeviceState> state) : state_(std::move(state)) {}

  explicit operator bool() const noexcept { return static_cast<bool>(state_); }
  std::string_view kind() const noexcept { return state_->backend->kind(); }
  /// The name given when it was made; used in messages, reports and traces.
  const std::string& name() const noexcept { return state_->name; }
  bool host_accessible() const noexcept { return state_->backend->host_accessible(); }
  MemoryStats memory() const { return state_->pool.stats(); }
  /// What was launched so far.
  DeviceCounts counts() const { return state_->counters.sum(); }
  /// Records every launch from now on; null ends it.
  void set_trace(Trace* trace) const noexcept { state_->trace.store(trace); }

  Queue& queue() const noexcept { return queue_ ? *queue_ : *state_->queue; }
  /// A further queue of this device; runs concurrently with the others where the backend can.
  Ref<Queue> make_queue() const { return state_->backend->make_queue(); }
  /// The same device with another queue: ops on tensors made through it run there.
  Device with(Ref<Queue> queue) const {
    Device other(*this);
    other.queue_ = std::move(queue);
    return other;
  }
  /// Blocks until the handle's queue is idle; throws the first failure of its work since the last throw.
  void synchronize() const { queue().synchronize(); }

  const Ref<DeviceState>& state() const noexcept { return state_; }
  /// Null for the default queue.
  const Ref<Queue>& own_queue() const noexcept { return queue_; }
  /// The same device, whatever the queue.
  friend bool operator==(const Device& a, const Device& b) noexcept { return a.state_ == b.state_; }

 private:
  Ref<DeviceState> state_;
  Ref<Queue> queue_;
};

}  // namespace lamina
