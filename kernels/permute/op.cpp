#include "lamina/kernels/permute/op.hpp"

#include <utility>

#include "lamina/kernels/reference.hpp"

namespace lamina {

Permute::Attrs detail::permute_attrs(const Shape& shape, std::span<const int> order) {
  if (order.size() != static_cast<std::size_t>(shape.rank())) {
    fail<ShapeError>(Permute::name, "an order of {} dims for {}", order.size(), to_string(shape));
  }
  Permute::Attrs attrs;
  for (std::size_t i = 0; i < order.size(); ++i) {
    attrs.order[i] = normalize_dim(Permute::name, order[i], shape.rank());
  }
  return attrs;
}

Permute::Attrs detail::transpose_attrs(const Shape& shape, int a, int b) {
  Permute::Attrs attrs;
  for (int i = 0; i < kMaxRank; ++i) attrs.order[static_cast<std::size_t>(i)] = i;
  std::swap(attrs.order[static_cast<std::size_t>(normalize_dim(Permute::name, a, shape.rank()))],
            attrs.order[static_cast<std::size_t>(normalize_dim(Permute::name, b, shape.rank()))]);
  return attrs;
}

Metas Permute::infer(const Attrs& a, MetasIn in) {
  const auto rank = static_cast<std::size_t>(in[0].shape.rank());
  std::array<std::int64_t, kMaxRank> dims{};
  unsigned seen = 0;
  for (std::size_t i = 0; i < rank; ++i) {
    const int dim = a.order[i];
    if (dim < 0 || dim >= in[0].shape.rank() || (seen >> dim & 1u) != 0) {
      fail<ShapeError>(name, "dim {} at place {} of the order for {}", dim, i, to_string(in[0].shape));
    }
    seen |= 1u << dim;
    dims[i] = in[0].shape[dim];
  }
  return {{Shape(std::span<const std::int64_t>(dims.data(), rank)), in[0].dtype}};
}

Cost Permute::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors Permute::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs) {
  Attrs inverse;
  for (int i = 0; i < saved.input_meta(0).shape.rank(); ++i) {
    inverse.order[static_cast<std::size_t>(a.order[static_cast<std::size_t>(i)])] = i;
  }
  return {apply<Permute>(inverse, {}, cotangents[0])};
}

template <class Real>
void Permute::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const Shape &from = in[0].shape, &to = out[0].shape;
  for (std::int64_t n = 0; n < to.count(); ++n) {
    std::array<std::int64_t, kMaxRank> index{};  // in the operand
    std::int64_t rest = n, source = 0;
    for (int i = to.rank() - 1; i >= 0; --i) {
      index[static_cast<std::size_t>(a.order[static_cast<std::size_t>(i)])] = rest % to[i];
      rest /= to[i];
    }
    for (int i = 0; i < from.rank(); ++i) source = source * from[i] + index[static_cast<std::size_t>(i)];
    if (in[0].real != nullptr) out[0].real[n] = in[0].real[source];
    if (in[0].index != nullptr) out[0].index[n] = in[0].index[source];
  }
}

std::vector<Sample<Permute::Attrs>> Permute::samples() {
  std::vector<Sample<Attrs>> samples = {{"scalar", {}, {{Shape{}}}},
                                        {"one", {{1, 0}}, {{{1, 1}}}},
                                        {"empty", {{1, 0}}, {{{3, 0}}}},
                                        {"same", {{0, 1}}, {{{5, 7}}}},
                                        {"matrix", {{1, 0}}, {{{19, 37}}}},
                                        {"squares", {{1, 0}}, {{{64, 48}}}},
                                        {"heads", {{0, 2, 1, 3}}, {{{2, 5, 3, 17}}}},
                                        {"keys", {{0, 2, 3, 1}}, {{{2, 17, 3, 19}}}},
                                        {"channels_last", {{0, 2, 3, 1}}, {{{2, 3, 4, 5}}}},
                                        {"reverse", {{4, 3, 2, 1, 0}}, {{{2, 3, 1, 4, 5}}}},
                                        {"small_inner", {{1, 0, 2}}, {{{9, 7, 2}}}},
                                        {"tall", {{1, 0}}, {{{16387, 3}}}},
                                        {"flat", {{1, 0}}, {{{3, 16387}}}},
                                        {"batch", {{0, 2, 1}}, {{{70, 17, 18}}}}};
  for (const DType dtype : {DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const Fill fill = is_floating(dtype) ? Fill::normal() : Fill::index(0, dtype == DType::boolean ? 2 : 100);
    samples.push_back({std::string(name_of(dtype)), {{1, 0}}, {{{67, 70}, fill, dtype}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Permute);

}  // namespace lamina
