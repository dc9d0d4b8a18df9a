#include "tests/ops/arrange.hpp"

#include <numeric>

#include "tests/ops/launch.hpp"

namespace lamina::harness {

std::string_view name_of(Arrangement arrangement) {
  constexpr std::string_view names[] = {"transposed", "reversed", "stepped", "shifted"};
  return names[static_cast<int>(arrangement)];
}

namespace {

// Writes the array's elements through `view`, whose storage nobody else uses yet.
void fill(const Tensor& view, const Array& array) {
  const Layout& layout = view.layout();
  const std::size_t size = size_of(array.meta.dtype);
  for (std::int64_t n = 0; n < array.count(); ++n) {
    std::int64_t rest = n, at = 0;
    for (int d = layout.shape.rank() - 1; d >= 0; --d) {
      at += rest % layout.shape[d] * layout.strides[static_cast<std::size_t>(d)];
      rest /= layout.shape[d];
    }
    std::memcpy(view.raw() + at * static_cast<std::int64_t>(size),
                array.bytes.data() + static_cast<std::size_t>(n) * size, size);
  }
}

Tensor blank(const Device& device, const Shape& shape, DType dtype) {
  return tensor_of(device, Array({shape, dtype}, dtype == DType::boolean ? 0 : 0xFF));
}

}  // namespace

Tensor arrange(const Device& device, const Array& array, Arrangement arrangement) {
  if (!device.host_accessible()) {
    const Tensor here = arrange(Devices::cpu().first, array, arrangement);
    const Storage& image = here.storage();
    const auto bytes = static_cast<std::int64_t>(image.bytes());
    return {Tensor::from_bytes(device, {bytes}, DType::u8, {image.data(), image.bytes()}).storage_ref(), here.layout(),
            here.dtype()};
  }
  const Shape& shape = array.meta.shape;
  const int rank = shape.rank();
  const DType dtype = array.meta.dtype;
  Tensor view;
  if (arrangement == Arrangement::shifted) {
    const std::int64_t shift = 1 + static_cast<std::int64_t>(hash_bytes(array.bytes) % 7);
    view = blank(device, {array.count() + shift}, dtype).slice(0, shift, array.count() + shift).view(shape);
  } else if (arrangement == Arrangement::stepped) {
    std::vector<std::int64_t> dims(shape.begin(), shape.end());
    for (std::int64_t& d : dims) d = 3 * d + 1;
    view = blank(device, Shape(std::span<const std::int64_t>(dims)), dtype);
    for (int d = 0; d < rank; ++d) view = view.slice(d, 1, 3 * shape[d] + 1, 3);
  } else {
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    if (arrangement == Arrangement::reversed) {
      std::vector<int> reversed(order.rbegin(), order.rend());
      order = reversed;
    } else if (rank >= 2) {
      std::swap(order[order.size() - 1], order[order.size() - 2]);
    }
    std::vector<std::int64_t> dims;
    for (const int d : order) dims.push_back(shape[d]);
    // Both orders are their own inverse.
    view = blank(device, Shape(std::span<const std::int64_t>(dims)), dtype).permute(std::span<const int>(order));
  }
  fill(view, array);
  return view;
}

}  // namespace lamina::harness
