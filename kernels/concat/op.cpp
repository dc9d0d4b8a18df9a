#include "lamina/kernels/concat/op.hpp"

#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/slice/op.hpp"

namespace lamina {

Metas Concat::infer(const Attrs& a, MetasIn in) {
  if (in.empty()) fail<ShapeError>(name, "no operands");
  const Shape& first = in[0].shape;
  if (a.dim < 0 || a.dim >= first.rank()) fail<ShapeError>(name, "dim {} of {}", a.dim, to_string(first));
  std::int64_t extent = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].dtype != in[0].dtype) {
      fail<DTypeError>(name, "operand {}: {} does not match {} of operand 0", i, name_of(in[i].dtype),
                       name_of(in[0].dtype));
    }
    if (in[i].shape.rank() != first.rank() || !(in[i].shape.with(a.dim, 0) == first.with(a.dim, 0))) {
      fail<ShapeError>(name, "operand {}: shape {} does not match {} but for dim {}", i, to_string(in[i].shape),
                       to_string(first), a.dim);
    }
    if (__builtin_add_overflow(extent, in[i].shape[a.dim], &extent)) {
      fail<ShapeError>(name, "operand {}: the extents of dim {} overflow", i, a.dim);
    }
  }
  return {{first.with(a.dim, extent), in[0].dtype}};
}

Cost Concat::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors Concat::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(saved.inputs());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < saved.inputs(); ++i) {
    const std::int64_t extent = saved.input_meta(i).shape[a.dim];
    if (needs[i]) gradients[i] = apply<Slice>({a.dim, at, at + extent, 1}, {}, cotangents[0]);
    at += extent;
  }
  return gradients;
}

template <class Real>
void Concat::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  std::int64_t at = 0, inner = 1;
  for (int i = a.dim + 1; i < out[0].shape.rank(); ++i) inner *= out[0].shape[i];
  for (const RefIn<Real>& x : in) {
    const std::int64_t run = x.shape[a.dim] * inner;
    for (std::int64_t n = 0; n < x.shape.count(); ++n) {
      const std::int64_t to = n / run * out[0].shape[a.dim] * inner + at * inner + n % run;
      if (x.real != nullptr) out[0].real[to] = x.real[n];
      if (x.index != nullptr) out[0].index[to] = x.index[n];
    }
    at += x.shape[a.dim];
  }
}

std::vector<Sample<Concat::Attrs>> Concat::samples() {
  std::vector<Sample<Attrs>> samples = {
      {"one", {0}, {{{1}}}},
      {"empty", {0}, {{{0, 3}}, {{0, 3}}}},
      {"with_empty", {0}, {{{2, 3}}, {{0, 3}}, {{1, 3}}}},
      {"first", {0}, {{{2, 5}}, {{3, 5}}}},
      {"last", {1}, {{{3, 2}}, {{3, 5}}, {{3, 1}}}},
      {"middle", {1}, {{{2, 3, 4}}, {{2, 1, 4}}}},
      {"blocks", {1}, {{{3, 8193}}, {{3, 9000}}}},
      {"i64", {1}, {{{3, 2}, Fill::index(0, 9), DType::i64}, {{3, 1}, Fill::index(0, 9), DType::i64}}}};
  Sample<Attrs> many{"many", {1}, {}};
  for (std::int64_t i = 0; i < 11; ++i) many.inputs.push_back({{2, i % 4, 3}});
  samples.push_back(std::move(many));
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Concat);

}  // namespace lamina
