#include "lamina/kernels/pad/op.hpp"

#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Pad::Attrs detail::pad_attrs(const Shape& shape, std::span<const std::int64_t> lo, std::span<const std::int64_t> hi,
                             double value) {
  const auto rank = static_cast<std::size_t>(shape.rank());
  if (lo.size() != rank || hi.size() != rank) {
    fail<ShapeError>(Pad::name, "{} and {} amounts for the {} dims of {}", lo.size(), hi.size(), rank,
                     to_string(shape));
  }
  Pad::Attrs attrs{.value = value};
  for (std::size_t i = 0; i < rank; ++i) {
    attrs.lo[i] = lo[i];
    attrs.hi[i] = hi[i];
  }
  return attrs;
}

Metas Pad::infer(const Attrs& a, MetasIn in) {
  std::array<std::int64_t, kMaxRank> dims{};
  const auto rank = static_cast<std::size_t>(in[0].shape.rank());
  for (std::size_t i = 0; i < rank; ++i) {
    if (a.lo[i] < 0 || a.hi[i] < 0) fail<ShapeError>(name, "dim {}: amounts {} and {}", i, a.lo[i], a.hi[i]);
    if (__builtin_add_overflow(in[0].shape[static_cast<int>(i)], a.lo[i], &dims[i]) ||
        __builtin_add_overflow(dims[i], a.hi[i], &dims[i])) {
      fail<ShapeError>(name, "dim {}: amounts {} and {} overflow", i, a.lo[i], a.hi[i]);
    }
  }
  return {{Shape(std::span<const std::int64_t>(dims.data(), rank)), in[0].dtype}};
}

Cost Pad::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors Pad::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs) {
  Tensor part = cotangents[0];
  const Shape& shape = saved.input_meta(0).shape;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t lo = a.lo[static_cast<std::size_t>(i)];
    part = part.slice(i, lo, lo + shape[i]);
  }
  return {copy(part, {})};
}

template <class Real>
void Pad::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const Shape &from = in[0].shape, &to = out[0].shape;
  for (std::int64_t n = 0; n < to.count(); ++n) {
    std::int64_t rest = n, source = 0, stride = 1;
    bool inside = true;
    for (int i = to.rank() - 1; i >= 0; --i) {
      const std::int64_t index = rest % to[i] - a.lo[static_cast<std::size_t>(i)];
      rest /= to[i];
      inside = inside && index >= 0 && index < from[i];
      source += index * stride;
      stride *= from[i];
    }
    if (out[0].real != nullptr) out[0].real[n] = inside ? in[0].real[source] : Real(a.value);
    if (out[0].index != nullptr) out[0].index[n] = inside ? in[0].index[source] : static_cast<std::int64_t>(a.value);
  }
}

std::vector<Sample<Pad::Attrs>> Pad::samples() {
  return {{"scalar", {}, {{Shape{}}}},
          {"none", {}, {{{3, 4}}}},
          {"from_empty", {{1, 0}, {1, 2}, 2.5}, {{{0, 3}}}},
          {"row", {{1}, {2}, -1}, {{{5}}}},
          {"matrix", {{1, 0}, {0, 3}, 0}, {{{3, 4}}}},
          {"image", {{0, 0, 1, 2}, {0, 0, 2, 1}, 0.5}, {{{2, 3, 4, 5}}}},
          {"first", {{2, 0, 0}, {1, 0, 0}, 0}, {{{3, 4, 5}}}},
          {"i32", {{1, 1}, {1, 1}, 7}, {{{3, 4}, Fill::index(0, 100), DType::i32}}},
          {"blocks", {{1, 3}, {0, 4}, 1}, {{{3, 16385}}}}};
}

LAMINA_INSTANTIATE_REFERENCE(Pad);

}  // namespace lamina
