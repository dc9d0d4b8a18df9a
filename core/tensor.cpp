#include "lamina/core/tensor.hpp"

#include <algorithm>
#include <cstring>

namespace lamina {

Storage::Storage(Ref<DeviceState> device, std::size_t bytes, const Queue& queue)
    : device_(std::move(device)), bytes_(bytes), home_(&queue) {
  if (!device_->has_storage) return;
  block_ = device_->pool.allocate(bytes, home_);
  if (!device_->synchronous) uses_ = std::make_unique<Uses>();
}

Storage::~Storage() {
  if (block_.data == nullptr) return;
  if (!uses_) {
    device_->pool.release(block_, home_, {});
    return;
  }
  // Work of the home queue is ordered before whatever reuses the block there; only other queues' uses count.
  std::vector<Event> uses = std::move(uses_->reads);
  uses.push_back(std::move(uses_->last_write));
  std::erase_if(uses, [&](const Event& e) { return e.queue() == nullptr || e.queue() == home_; });
  device_->pool.release(block_, home_, uses);
}

void Storage::begin_use(Queue& queue, bool write) {
  if (!uses_) return;
  std::lock_guard lock(uses_->mutex);
  if (uses_->last_write.queue() != &queue) queue.wait_for(uses_->last_write);
  if (!write) return;
  for (const Event& read : uses_->reads) {
    if (read.queue() != &queue) queue.wait_for(read);
  }
}

void Storage::end_use(Queue& queue, bool write) {
  if (!uses_) return;
  Event event = queue.record();
  std::lock_guard lock(uses_->mutex);
  if (write) {
    uses_->last_write = std::move(event);
    uses_->reads.clear();
    return;
  }
  for (Event& read : uses_->reads) {
    if (read.queue() == &queue) {
      read = std::move(event);
      return;
    }
  }
  uses_->reads.push_back(std::move(event));
}

void Storage::wait_written() const {
  if (!uses_) return;
  Event event;
  {
    std::lock_guard lock(uses_->mutex);
    event = uses_->last_write;
  }
  event.wait();
}

Tensor Tensor::empty(const Device& device, const Shape& shape, DType dtype) {
  if (!device) fail<DeviceError>("tensor", "no device given for shape {}", to_string(shape));
  return {device.state(), device.own_queue(), shape, dtype};
}

Ref<Storage> Tensor::new_storage(const Ref<DeviceState>& device, const Ref<Queue>& queue, const Shape& shape,
                                 DType dtype) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.count(), static_cast<std::int64_t>(size_of(dtype)), &bytes)) {
    fail<ShapeError>("tensor", "bytes of {}{} overflow 63 bits", name_of(dtype), to_string(shape));
  }
  return make_ref<Storage>(device, static_cast<std::size_t>(bytes), queue ? *queue : *device->queue);
}

Tensor Tensor::zeros(const Device& device, const Shape& shape, DType dtype) {
  Tensor t = empty(device, shape, dtype);
  if (t.storage().bytes() > 0 && t.raw() != nullptr) {
    Queue& queue = device.queue();
    t.storage().begin_use(queue, true);
    queue.fill_zero(t.raw(), t.storage().bytes());
    t.storage().end_use(queue, true);
  }
  return t;
}

Tensor Tensor::from_bytes(const Device& device, const Shape& shape, DType dtype, std::span<const std::byte> bytes) {
  Tensor t = empty(device, shape, dtype);
  if (t.storage().bytes() != bytes.size()) {
    fail<ShapeError>("tensor", "{} bytes given for {}{}, which has {}", bytes.size(), name_of(dtype), to_string(shape),
                     t.storage().bytes());
  }
  if (!bytes.empty() && t.raw() != nullptr) {
    Queue& queue = device.queue();
    t.storage().begin_use(queue, true);
    queue.copy_in(t.raw(), bytes.data(), bytes.size());
    t.storage().end_use(queue, true);
  }
  return t;
}

Device Tensor::device() const {
  if (!storage_) return {};
  Device device(storage_->device_ref());
  return queue_ ? device.with(queue_) : device;
}

Tensor Tensor::with(const Device& device) const {
  if (!(this->device() == device)) {
    fail<DeviceError>("tensor", "with(): {} is not on {}; use to() to copy", to_string(*this), device.name());
  }
  return {storage_, layout_, dtype_, device.own_queue()};
}

Tensor Tensor::view_dims(std::span<const std::int64_t> requested) const {
  InlineVector<std::int64_t, kMaxRank> dims(requested);
  const auto unknown = std::find(dims.begin(), dims.end(), -1);
  if (unknown != dims.end()) {
    std::int64_t known = 1;
    bool overflow = false;
    for (const std::int64_t d : dims) overflow = overflow || (d != -1 && __builtin_mul_overflow(known, d, &known));
    if (overflow || known <= 0 || count() % known != 0) {
      fail<ShapeError>("view", "{} elements do not divide by {}", count(), known);
    }
    *unknown = count() / known;
  }
  const Shape target{std::span<const std::int64_t>(dims.data(), dims.size())};
  if (target.count() != count()) {
    fail<ShapeError>("view", "{} has {} elements, {} has {}", to_string(shape()), count(), to_string(target),
                     target.count());
  }
  Layout layout(target);
  layout.offset = layout_.offset;
  if (!is_contiguous()) {
    // Walk both shapes from the back in groups of equal count; inside a group the old dims must be one run.
    int old_dim = shape().rank() - 1;
    int new_dim = target.rank() - 1;
    while (new_dim >= 0) {
      while (old_dim >= 0 && shape()[old_dim] == 1) --old_dim;
      if (target[new_dim] == 1) {
        --new_dim;
        continue;
      }
      std::int64_t stride = layout_.strides[static_cast<std::size_t>(old_dim)];
      std::int64_t old_count = shape()[old_dim];
      std::int64_t new_count = 1;
      for (;;) {
        while (new_count < old_count && new_dim >= 0) {
          layout.strides[static_cast<std::size_t>(new_dim)] = stride * new_count;
          new_count *= target[new_dim--];
        }
        if (new_count == old_count) break;
        // The group needs the next old dim too: it must go on where this one ends.
        do --old_dim;
        while (old_dim >= 0 && shape()[old_dim] == 1);
        if (old_dim < 0 || layout_.strides[static_cast<std::size_t>(old_dim)] != stride * old_count) {
          fail<LayoutError>("view", "strides of {} cannot express {}; make it contiguous first", to_string(shape()),
                            to_string(target));
        }
        old_count *= shape()[old_dim];
      }
      --old_dim;
    }
  }
  return {storage_, layout, dtype_, queue_};
}

Tensor Tensor::slice(int dim, std::int64_t lo, std::int64_t hi, std::int64_t step) const {
  dim = normalize_dim("slice", dim, shape().rank());
  if (lo < 0 || hi < lo || hi > shape()[dim] || step < 1) {
    fail<ShapeError>("slice", "[{}, {}) step {} of dim {} of {}", lo, hi, step, dim, to_string(shape()));
  }
  Layout layout = layout_;
  const auto d = static_cast<std::size_t>(dim);
  layout.shape = shape().with(dim, (hi - lo) / step + ((hi - lo) % step != 0 ? 1 : 0));
  if (layout.shape.count() > 0) layout.offset += lo * layout_.strides[d];
  if (layout.shape[dim] > 1) layout.strides[d] *= step;  // else any stride will do, and this could overflow
  return {storage_, layout, dtype_, queue_};
}

Tensor Tensor::permute(std::span<const int> order) const {
  const auto rank = static_cast<std::size_t>(shape().rank());
  unsigned seen = 0;
  std::array<std::int64_t, kMaxRank> dims{};
  Layout layout = layout_;
  bool valid = order.size() == rank;
  for (std::size_t i = 0; valid && i < rank; ++i) {
    valid = order[i] >= 0 && order[i] < static_cast<int>(rank) && (seen & (1u << order[i])) == 0;
    if (!valid) break;
    seen |= 1u << order[i];
    dims[i] = shape()[order[i]];
    layout.strides[i] = layout_.strides[static_cast<std::size_t>(order[i])];
  }
  if (!valid) fail<ShapeError>("permute", "not a permutation of the {} dims of {}", rank, to_string(shape()));
  layout.shape = Shape(std::span<const std::int64_t>(dims.data(), rank));
  return {storage_, layout, dtype_, queue_};
}

Tensor Tensor::transpose(int a, int b) const {
  a = normalize_dim("transpose", a, shape().rank());
  b = normalize_dim("transpose", b, shape().rank());
  std::array<int, kMaxRank> order{0, 1, 2, 3, 4, 5, 6, 7};
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return permute(std::span<const int>(order.data(), static_cast<std::size_t>(shape().rank())));
}

Tensor Tensor::expand(const Shape& target) const {
  Layout layout;
  layout.shape = target;
  layout.offset = layout_.offset;
  const int lead = target.rank() - shape().rank();
  if (lead < 0) fail<ShapeError>("expand", "{} has fewer dims than {}", to_string(target), to_string(shape()));
  for (int i = 0; i < target.rank(); ++i) {
    const std::int64_t extent = i < lead ? 1 : shape()[i - lead];
    if (extent != target[i] && extent != 1) {
      fail<ShapeError>("expand", "{} does not expand to {}: dim {} is {}", to_string(shape()), to_string(target), i,
                       extent);
    }
    const bool repeated = i < lead || extent != target[i];
    layout.strides[static_cast<std::size_t>(i)] = repeated ? 0 : layout_.strides[static_cast<std::size_t>(i - lead)];
  }
  return {storage_, layout, dtype_, queue_};
}

Tensor Tensor::to(const Device& target) const {
  if (!defined()) fail<DeviceError>("to", "the tensor is undefined");
  if (!is_contiguous()) fail<LayoutError>("to", "{} is not contiguous", to_string(*this));
  if (device() == target) return {storage_, layout_, dtype_, target.own_queue()};
  Tensor out = empty(target, shape(), dtype_);
  if (out.storage().bytes() == 0 || out.raw() == nullptr || raw() == nullptr) return out;
  const std::size_t bytes = out.storage().bytes();
  Queue& from = queue();
  Queue& into = target.queue();
  storage_->begin_use(from, false);
  out.storage().begin_use(into, true);
  if (storage_->device().backend->host_accessible()) {
    storage_->wait_written();
    into.copy_in(out.raw(), raw(), bytes);
  } else if (target.host_accessible()) {
    from.copy_out(out.raw(), raw(), bytes);
  } else {
    std::vector<std::byte> staging(bytes);
    from.copy_out(staging.data(), raw(), bytes);
    into.copy_in(out.raw(), staging.data(), bytes);
  }
  storage_->end_use(from, false);
  out.storage().end_use(into, true);
  return out;
}

namespace {

// The bytes of the storage from the tensor's first to its last element, on the host.
std::vector<std::byte> fetch(const Tensor& t, std::int64_t& span_elements) {
  std::int64_t last = 0;
  for (int i = 0; i < t.shape().rank(); ++i) {
    last += (t.shape()[i] - 1) * t.layout().strides[static_cast<std::size_t>(i)];
  }
  span_elements = last + 1;
  std::vector<std::byte> bytes(static_cast<std::size_t>(span_elements) * size_of(t.dtype()));
  Device device = t.device();
  t.storage().begin_use(device.queue(), false);
  device.queue().copy_out(bytes.data(), t.raw(), bytes.size());
  return bytes;
}

template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

}  // namespace

template <class T>
std::vector<T> to_vector(const Tensor& t) {
  if (!t.defined()) fail<DeviceError>("to_vector", "the tensor is undefined");
  if (!t.storage().device().has_storage) fail<DeviceError>("to_vector", "{} has no elements", to_string(t));
  const std::int64_t count = t.count();
  std::vector<T> out;
  if (count == 0) return out;
  out.reserve(static_cast<std::size_t>(count));
  std::int64_t span = 0;
  const std::vector<std::byte> bytes = fetch(t, span);
  visit(t.dtype(), [&]<class From>() {
    const auto* data = reinterpret_cast<const From*>(bytes.data());
    std::array<std::int64_t, kMaxRank> index{};
    const int rank = t.shape().rank();
    for (std::int64_t n = 0; n < count; ++n) {
      std::int64_t at = 0;
      for (int i = 0; i < rank; ++i) {
        at += index[static_cast<std::size_t>(i)] * t.layout().strides[static_cast<std::size_t>(i)];
      }
      out.push_back(convert<T>(data[at]));
      for (int i = rank - 1; i >= 0 && ++index[static_cast<std::size_t>(i)] == t.shape()[i]; --i) {
        index[static_cast<std::size_t>(i)] = 0;
      }
    }
  });
  return out;
}

template std::vector<float> to_vector(const Tensor&);
template std::vector<double> to_vector(const Tensor&);
template std::vector<Half> to_vector(const Tensor&);
template std::vector<BFloat16> to_vector(const Tensor&);
template std::vector<std::int32_t> to_vector(const Tensor&);
template std::vector<std::int64_t> to_vector(const Tensor&);
template std::vector<std::uint8_t> to_vector(const Tensor&);
template std::vector<bool> to_vector(const Tensor&);

double Tensor::item() const {
  if (!defined() || count() != 1) {
    fail<ShapeError>("item", "{} has {} elements, not 1", to_string(*this), defined() ? count() : 0);
  }
  return to_vector<double>(*this).front();
}

namespace detail {

const std::byte* host_bytes(const Tensor& t, DType dtype) {
  if (!t.defined()) fail<DeviceError>("host", "the tensor is undefined");
  if (t.dtype() != dtype) {
    fail<DTypeError>("host", "{} accessed as {}", to_string(t), name_of(dtype));
  }
  if (!t.storage().device().backend->host_accessible()) {
    fail<DeviceError>("host", "{} is not reachable from the host; copy it with to() or to_vector()", to_string(t));
  }
  if (!t.is_contiguous()) fail<LayoutError>("host", "{} is not contiguous", to_string(t));
  t.storage().wait_written();
  return t.raw();
}

std::byte* host_bytes_mut(Tensor& t, DType dtype) {
  const std::byte* data = host_bytes(t, dtype);
  if (!t.sole()) {
    fail<AliasError>("host_mut", "{} shares its storage with {} other handle(s)", to_string(t),
                     t.storage().owners() - 1);
  }
  return const_cast<std::byte*>(data);
}

}  // namespace detail

std::string to_string(const Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{}{} on {}", name_of(t.dtype()), to_string(t.shape()), t.storage().device().name);
}

}  // namespace lamina
