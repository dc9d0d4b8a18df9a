#include "lamina/kernels/slice/op.hpp"

#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

// Elements before and after the dim.
struct Around {
  std::int64_t outer = 1, inner = 1;
  Around(const Shape& shape, int dim) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

void check_dim(std::string_view op, int dim, const Shape& shape) {
  if (dim < 0 || dim >= shape.rank()) fail<ShapeError>(op, "dim {} of {}", dim, to_string(shape));
}

}  // namespace

Metas Slice::infer(const Attrs& a, MetasIn in) {
  const Shape& shape = in[0].shape;
  check_dim(name, a.dim, shape);
  if (a.lo < 0 || a.hi < a.lo || a.hi > shape[a.dim]) {
    fail<ShapeError>(name, "[{}, {}) of dim {} of {}", a.lo, a.hi, a.dim, to_string(shape));
  }
  if (a.step < 1) fail<ShapeError>(name, "step {}; allowed: 1 or more", a.step);
  const std::int64_t length = a.hi - a.lo;
  return {{shape.with(a.dim, length / a.step + (length % a.step != 0 ? 1 : 0)), in[0].dtype}};
}

Cost Slice::cost(const Attrs&, MetasIn, MetasIn out) {
  const std::int64_t bytes = out[0].bytes();
  return {0, bytes, bytes};
}

Tensors Slice::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<SliceGrad>({a.dim, a.lo, a.step, saved.input_meta(0).shape[a.dim]}, {}, cotangents[0])};
}

template <class Real>
void Slice::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const std::int64_t extent = in[0].shape[a.dim], taken = out[0].shape[a.dim];
  const Around around(in[0].shape, a.dim);
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t k = 0; k < taken; ++k) {
      for (std::int64_t i = 0; i < around.inner; ++i) {
        const std::int64_t to = (o * taken + k) * around.inner + i;
        const std::int64_t from = (o * extent + a.lo + k * a.step) * around.inner + i;
        if (in[0].real != nullptr) out[0].real[to] = in[0].real[from];
        if (in[0].index != nullptr) out[0].index[to] = in[0].index[from];
      }
    }
  }
}

std::vector<Sample<Slice::Attrs>> Slice::samples() {
  std::vector<Sample<Attrs>> samples = {{"one", {0, 0, 1, 1}, {{{1}}}},
                                        {"empty", {0, 0, 3, 1}, {{{3, 0}}}},
                                        {"nothing", {0, 2, 2, 1}, {{{3, 4}}}},
                                        {"first", {0, 1, 3, 1}, {{{5, 7}}}},
                                        {"last", {1, 2, 6, 1}, {{{5, 7}}}},
                                        {"middle", {1, 1, 4, 1}, {{{3, 5, 4}}}},
                                        {"step_first", {0, 1, 7, 3}, {{{8, 3}}}},
                                        {"step_last", {2, 0, 7, 2}, {{{2, 3, 7}}}},
                                        {"step_long", {1, 2, 6, 9}, {{{5, 7}}}},
                                        {"all", {1, 0, 7, 1}, {{{5, 7}}}},
                                        {"blocks", {1, 3, 16390, 1}, {{{3, 16391}}}}};
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::boolean}) {
    const Fill fill = Fill::index(0, dtype == DType::boolean ? 2 : 100);
    samples.push_back({std::string(name_of(dtype)), {1, 1, 6, 2}, {{{5, 7}, fill, dtype}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Slice);

Metas SliceGrad::infer(const Attrs& a, MetasIn in) {
  const Shape& shape = in[0].shape;
  check_dim(name, a.dim, shape);
  const std::int64_t taken = shape[a.dim];
  if (a.step < 1) fail<ShapeError>(name, "step {}; allowed: 1 or more", a.step);
  if (a.lo < 0 || a.extent < a.lo || (taken > 0 && (a.extent == a.lo || (a.extent - a.lo - 1) / a.step < taken - 1))) {
    fail<ShapeError>(name, "operand 0: {} elements of dim {} from {} step {} do not fit into {}", taken, a.dim, a.lo,
                     a.step, a.extent);
  }
  return {{shape.with(a.dim, a.extent), in[0].dtype}};
}

Cost SliceGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors SliceGrad::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs) {
  const std::int64_t taken = saved.input_meta(0).shape[a.dim];
  const std::int64_t hi = taken == 0 ? a.lo : a.lo + (taken - 1) * a.step + 1;
  return {apply<Slice>({a.dim, a.lo, hi, a.step}, {}, cotangents[0])};
}

template <class Real>
void SliceGrad::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const std::int64_t extent = out[0].shape[a.dim], taken = in[0].shape[a.dim];
  const Around around(in[0].shape, a.dim);
  for (std::int64_t n = 0; n < out[0].shape.count(); ++n) {
    if (out[0].real != nullptr) out[0].real[n] = Real(0);
    if (out[0].index != nullptr) out[0].index[n] = 0;
  }
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t k = 0; k < taken; ++k) {
      for (std::int64_t i = 0; i < around.inner; ++i) {
        const std::int64_t from = (o * taken + k) * around.inner + i;
        const std::int64_t to = (o * extent + a.lo + k * a.step) * around.inner + i;
        if (in[0].real != nullptr) out[0].real[to] = in[0].real[from];
        if (in[0].index != nullptr) out[0].index[to] = in[0].index[from];
      }
    }
  }
}

std::vector<Sample<SliceGrad::Attrs>> SliceGrad::samples() {
  return {{"one", {0, 0, 1, 1}, {{{1}}}},
          {"nothing", {0, 2, 1, 3}, {{{0, 4}}}},
          {"first", {0, 1, 1, 5}, {{{2, 7}}}},
          {"last", {1, 2, 1, 7}, {{{5, 4}}}},
          {"step_first", {0, 1, 3, 8}, {{{2, 3}}}},
          {"step_last", {2, 0, 2, 7}, {{{2, 3, 4}}}},
          {"i32", {1, 1, 2, 7}, {{{5, 3}, Fill::index(0, 100), DType::i32}}},
          {"blocks", {1, 3, 1, 16391}, {{{3, 16387}}}}};
}

LAMINA_INSTANTIATE_REFERENCE(SliceGrad);

}  // namespace lamina
