// Buffer: the elements a collective reads or writes: host memory in one run or scattered over several, in order. It
// keeps tensors alive, not plain memory. Thread-safety: values, as spans are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "lamina/core/dtype.hpp"
#include "lamina/core/inline_vector.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina::comm {

template <class Byte>
class BasicBuffer {
 public:
  struct Piece {
    Byte* data;
    std::int64_t first;  ///< element of the buffer
    std::int64_t count;  ///< elements
  };

  BasicBuffer() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_const_t<T>, std::byte> && std::is_const_v<Byte> >= std::is_const_v<T>)
  BasicBuffer(std::span<T> elements) : dtype_(dtype_of<T>) {  // NOLINT: implicit on purpose
    add(reinterpret_cast<Byte*>(elements.data()), static_cast<std::int64_t>(elements.size()));
  }
  template <class T>
  BasicBuffer(std::vector<T>& elements) : BasicBuffer(std::span<T>(elements)) {}  // NOLINT: implicit on purpose
  BasicBuffer(Byte* data, std::int64_t count, DType dtype) : dtype_(dtype) { add(data, count); }
  /// A buffer that is only read.
  BasicBuffer(const BasicBuffer<std::byte>& other)  // NOLINT: implicit on purpose
    requires(std::is_const_v<Byte>)
      : dtype_(other.dtype()), count_(other.count()), tensors_(other.tensors().begin(), other.tensors().end()) {
    for (const auto& p : other.pieces()) pieces_.push_back({p.data, p.first, p.count});
  }
  BasicBuffer(const BasicBuffer&) = default;
  BasicBuffer(BasicBuffer&&) noexcept = default;
  BasicBuffer& operator=(const BasicBuffer&) = default;
  BasicBuffer& operator=(BasicBuffer&&) noexcept = default;

  DType dtype() const noexcept { return dtype_; }
  std::int64_t count() const noexcept { return count_; }
  std::size_t element() const noexcept { return size_of(dtype_); }
  std::span<const Piece> pieces() const noexcept { return {pieces_.data(), pieces_.size()}; }
  std::span<const Tensor> tensors() const noexcept { return tensors_; }

  /// Appends elements of the buffer's dtype.
  void add(Byte* data, std::int64_t count) {
    if (count == 0) return;
    pieces_.push_back({data, count_, count});
    count_ += count;
  }
  void keep(Tensor tensor) { tensors_.push_back(std::move(tensor)); }

  /// The run of elements that begins at `at`: its address, and how many of `count` lie there.
  std::span<Byte> run(std::int64_t at, std::int64_t count) const noexcept {
    if (count <= 0) return {};
    std::size_t i = 0;
    if (pieces_.size() > 1) {
      const auto it = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                       [](std::int64_t a, const Piece& p) { return a < p.first; });
      i = static_cast<std::size_t>(it - pieces_.begin()) - 1;
    }
    const Piece& p = pieces_[i];
    const std::int64_t inside = at - p.first, n = std::min(count, p.count - inside);
    return {p.data + inside * static_cast<std::int64_t>(element()), static_cast<std::size_t>(n) * element()};
  }

  friend bool same_memory(const BasicBuffer& a, const BasicBuffer& b) noexcept {
    return a.count_ == b.count_ && std::equal(a.pieces_.begin(), a.pieces_.end(), b.pieces_.begin(), b.pieces_.end(),
                                              [](const Piece& x, const Piece& y) { return x.data == y.data; });
  }

 private:
  DType dtype_ = DType::u8;
  std::int64_t count_ = 0;
  InlineVector<Piece, 1> pieces_;
  std::vector<Tensor> tensors_;
};

using Buffer = BasicBuffer<std::byte>;
using ConstBuffer = BasicBuffer<const std::byte>;

/// The elements of dense tensors in host memory, one after another; all of one dtype. Written in place, so each must be
/// the only handle of its storage (AliasError). Throws LayoutError, DTypeError, DeviceError.
Buffer buffer_of(std::span<Tensor> tensors);
inline Buffer buffer_of(Tensor& tensor) { return buffer_of(std::span<Tensor>(&tensor, 1)); }
/// As above, to be read only.
ConstBuffer const_buffer_of(std::span<const Tensor> tensors);
inline ConstBuffer const_buffer_of(const Tensor& tensor) {
  return const_buffer_of(std::span<const Tensor>(&tensor, 1));
}

}  // namespace lamina::comm
