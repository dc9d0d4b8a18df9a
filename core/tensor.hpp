// Tensor: a value handle on shared storage, with a layout and a dtype. No graph, no cached flags. Ops (kernels/) are
// free functions that never write their inputs; views share storage and never copy.
//
// Thread-safety: one handle belongs to one thread at a time, as an int does; different handles on one storage may be
// read from any threads. Writing needs sole ownership of the storage (host_mut, the *_into and *_inplace ops).
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lamina/core/device.hpp"
#include "lamina/core/dtype.hpp"
#include "lamina/core/error.hpp"
#include "lamina/core/inline_vector.hpp"
#include "lamina/core/shape.hpp"

namespace lamina {

/// What shape rules see of a tensor.
struct Meta {
  Shape shape;
  DType dtype = DType::f32;
  std::int64_t bytes() const noexcept { return shape.count() * static_cast<std::int64_t>(size_of(dtype)); }
  friend bool operator==(const Meta&, const Meta&) = default;
};

/// A block of a device's memory. It knows its last write, so that work on another queue can wait for it.
class Storage final : public Counted {
 public:
  /// Throws OutOfMemory.
  Storage(Ref<DeviceState> device, std::size_t bytes, const Queue& queue);
  ~Storage() override;

  DeviceState& device() const noexcept { return *device_; }
  const Ref<DeviceState>& device_ref() const noexcept { return device_; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(block_.data); }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Asynchronous devices: `queue` is about to read or write the block. Makes it wait for conflicting earlier work of
  /// other queues. Call before the work is put on the queue.
  void begin_use(Queue& queue, bool write);
  /// Notes the work just put on `queue`.
  void end_use(Queue& queue, bool write);
  /// Blocks the host until the last write is done; throws what that queue's work threw.
  void wait_written() const;

 private:
  struct Uses {
    std::mutex mutex;
    Event last_write;
    std::vector<Event> reads;  // since then, at most one a queue
  };
  Ref<DeviceState> device_;
  MemoryPool::Block block_;
  std::size_t bytes_;
  const Queue* home_;           // the queue the block may be reused on at once
  std::unique_ptr<Uses> uses_;  // null on synchronous devices
};

class Tensor {
 public:
  /// An undefined handle: no storage. Every use but assignment and defined() throws DeviceError or is a caller's bug.
  Tensor() = default;

  /// Uninitialised elements. Throws OutOfMemory.
  static Tensor empty(const Device& device, const Shape& shape, DType dtype = DType::f32);
  static Tensor zeros(const Device& device, const Shape& shape, DType dtype = DType::f32);
  /// A copy of host values in row-major order. Throws ShapeError when their number does not fit.
  template <class T>
  static Tensor from(const Device& device, const Shape& shape, std::span<const T> values) {
    return from_bytes(device, shape, dtype_of<T>, std::as_bytes(values));
  }
  template <class T>
  static Tensor from(const Device& device, const Shape& shape, const std::vector<T>& values) {
    return from(device, shape, std::span<const T>(values));
  }
  template <class T>
  static Tensor from(const Device& device, const Shape& shape, std::initializer_list<T> values) {
    return from(device, shape, std::span<const T>(values.begin(), values.size()));
  }
  static Tensor from_bytes(const Device& device, const Shape& shape, DType dtype, std::span<const std::byte> bytes);

  bool defined() const noexcept { return static_cast<bool>(storage_); }
  const Shape& shape() const noexcept { return layout_.shape; }
  const Layout& layout() const noexcept { return layout_; }
  DType dtype() const noexcept { return dtype_; }
  Meta meta() const noexcept { return {layout_.shape, dtype_}; }
  std::int64_t count() const noexcept { return layout_.shape.count(); }
  bool is_contiguous() const noexcept { return layout_.is_contiguous(); }
  /// The queue this handle's work runs on.
  Queue& queue() const noexcept { return queue_ ? *queue_ : *storage_->device().queue; }
  /// The device, with the queue this handle's work runs on.
  Device device() const;
  /// The same tensor, whose ops run on another queue of its device.
  Tensor with(const Device& device) const;

  // Views: same storage, never a copy.
  /// Throws LayoutError when the strides cannot express it, ShapeError when the counts differ. One extent may be -1.
  Tensor view(std::initializer_list<std::int64_t> dims) const { return view_dims({dims.begin(), dims.size()}); }
  Tensor view(const Shape& shape) const { return view_dims(shape.dims()); }
  /// Elements lo <= i < hi of one dim, every `step`th. Throws ShapeError unless 0 <= lo <= hi <= extent, step >= 1.
  Tensor slice(int dim, std::int64_t lo, std::int64_t hi, std::int64_t step = 1) const;
  /// Dims in a new order. Throws ShapeError unless `order` is a permutation.
  Tensor permute(std::span<const int> order) const;
  Tensor permute(std::initializer_list<int> order) const { return permute({order.begin(), order.size()}); }
  /// Two dims swapped; negative counts from the end.
  Tensor transpose(int a, int b) const;
  /// Extents of 1 and new leading dims repeated by stride 0. Throws ShapeError.
  Tensor expand(const Shape& shape) const;

  /// A dense copy on another device; blocks the host if either is asynchronous. LayoutError unless contiguous.
  Tensor to(const Device& device) const;
  /// The one element of a tensor of count 1, converted to double. Blocks.
  double item() const;

  /// True when this handle is the storage's only owner.
  bool sole() const noexcept { return storage_ && storage_->sole(); }
  /// True when both are on the same storage.
  bool shares_storage(const Tensor& other) const noexcept { return storage_ == other.storage_; }

  // For kernels and backends.
  Storage& storage() const noexcept { return *storage_; }
  const Ref<Storage>& storage_ref() const noexcept { return storage_; }
  const Ref<Queue>& own_queue() const noexcept { return queue_; }
  /// Address of the first element in the device's memory; null without storage.
  std::byte* raw() const noexcept {
    std::byte* base = storage_->data();
    return base == nullptr ? nullptr : base + layout_.offset * static_cast<std::int64_t>(size_of(dtype_));
  }
  /// Uninitialised dense elements. The layout is built in its place: copying what was just written by words stalls.
  Tensor(const Ref<DeviceState>& device, const Ref<Queue>& queue, const Shape& shape, DType dtype)
      : storage_(new_storage(device, queue, shape, dtype)), queue_(queue), layout_(shape), dtype_(dtype) {}
  Tensor(Ref<Storage> storage, const Layout& layout, DType dtype, Ref<Queue> queue = nullptr)
      : storage_(std::move(storage)), queue_(std::move(queue)), layout_(layout), dtype_(dtype) {}

 private:
  static Ref<Storage> new_storage(const Ref<DeviceState>& device, const Ref<Queue>& queue, const Shape& shape,
                                  DType dtype);
  Tensor view_dims(std::span<const std::int64_t> dims) const;

  Ref<Storage> storage_;
  Ref<Queue> queue_;  // null: the device's default queue
  Layout layout_;
  DType dtype_ = DType::f32;
};

using Tensors = InlineVector<Tensor, 3>;
using TensorsIn = std::span<const Tensor>;
using Metas = InlineVector<Meta, 3>;
using MetasIn = std::span<const Meta>;

namespace detail {
const std::byte* host_bytes(const Tensor& tensor, DType dtype);
std::byte* host_bytes_mut(Tensor& tensor, DType dtype);
}  // namespace detail

/// The elements in row-major order, in place. Throws DTypeError when T is not the dtype, DeviceError when the host
/// cannot reach the device's memory, LayoutError unless contiguous. Valid while the tensor's storage lives.
template <class T>
std::span<const T> host(const Tensor& tensor) {
  const std::byte* data = detail::host_bytes(tensor, dtype_of<T>);
  return {reinterpret_cast<const T*>(data), static_cast<std::size_t>(tensor.count())};
}

/// As host(), for writing. Throws AliasError unless this handle is the only owner of its storage.
template <class T>
std::span<T> host_mut(Tensor& tensor) {
  std::byte* data = detail::host_bytes_mut(tensor, dtype_of<T>);
  return {reinterpret_cast<T*>(data), static_cast<std::size_t>(tensor.count())};
}

/// A host copy of the elements in row-major order, from any device and layout. Blocks.
template <class T>
std::vector<T> to_vector(const Tensor& tensor);

/// "f32(8,64) on cpu"
std::string to_string(const Tensor& tensor);

}  // namespace lamina
