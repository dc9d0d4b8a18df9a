#include "tests/ops/array.hpp"

#include <fmt/format.h>

namespace lamina::harness {

namespace {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

template <class Value>
Array convert(const Meta& meta, std::span<const Value> values) {
  Array array(meta);
  visit(meta.dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T item;
      if constexpr (is_half<T>) {
        item = T(static_cast<float>(values[i]));
      } else if constexpr (std::is_same_v<T, bool>) {
        item = values[i] != 0;
      } else {
        item = static_cast<T>(values[i]);
      }
      std::memcpy(array.bytes.data() + i * sizeof(T), &item, sizeof(T));
    }
  });
  return array;
}

template <class Value>
std::vector<Value> values_of(const Array& array) {
  std::vector<Value> values(static_cast<std::size_t>(array.count()));
  visit(array.meta.dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        values[i] = static_cast<Value>(array.bytes[i]);
      } else {
        T item;
        std::memcpy(&item, array.bytes.data() + i * sizeof(T), sizeof(T));
        if constexpr (is_half<T>) {
          values[i] = static_cast<Value>(static_cast<float>(item));
        } else {
          values[i] = static_cast<Value>(item);
        }
      }
    }
  });
  return values;
}

}  // namespace

Array array_of(const Meta& meta, std::span<const double> values) { return convert(meta, values); }
Array array_of(const Meta& meta, std::span<const std::int64_t> values) { return convert(meta, values); }
std::vector<double> real_values(const Array& array) { return values_of<double>(array); }
std::vector<std::int64_t> index_values(const Array& array) { return values_of<std::int64_t>(array); }

Array array_of(const Tensor& tensor) {
  Array array(tensor.meta());
  const Layout& layout = tensor.layout();
  const std::size_t size = size_of(tensor.dtype());
  const Storage& storage = tensor.storage();
  const std::byte* first = tensor.raw();
  std::vector<std::byte> copied;  // of a device whose memory the host cannot reach: all of the storage
  if (!tensor.device().host_accessible() && storage.bytes() > 0) {
    storage.wait_written();
    copied.resize(storage.bytes());
    tensor.queue().copy_out(copied.data(), storage.data(), copied.size());
    first = copied.data() + (first - storage.data());
  }
  std::array<std::int64_t, kMaxRank> index{};
  const std::int64_t count = tensor.count();
  std::int64_t at = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    std::memcpy(array.bytes.data() + static_cast<std::size_t>(n) * size, first + at * static_cast<std::int64_t>(size),
                size);
    for (int d = layout.shape.rank() - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      at += layout.strides[i];
      if (++index[i] < layout.shape[d]) break;
      at -= layout.strides[i] * layout.shape[d];
      index[i] = 0;
    }
  }
  return array;
}

Tensor tensor_of(const Device& device, const Array& array) {
  return Tensor::from_bytes(device, array.meta.shape, array.meta.dtype, array.bytes);
}

std::uint64_t hash_bytes(std::span<const std::byte> bytes, std::uint64_t hash) {
  for (const std::byte b : bytes) hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
  return hash;
}

std::string index_string(const Shape& shape, std::int64_t n) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[static_cast<std::size_t>(i)] = n % shape[i];
    n /= shape[i];
  }
  return fmt::format("({})", fmt::join(index, ","));
}

}  // namespace lamina::harness
