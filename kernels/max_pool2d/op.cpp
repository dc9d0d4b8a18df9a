#include "lamina/kernels/max_pool2d/op.hpp"

#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas MaxPool2d::infer(const Attrs& attrs, MetasIn in) {
  const Shape shape = pooled_shape(name, attrs, in[0]);
  return {{shape, in[0].dtype}, {shape, DType::i64}};
}

namespace {

// Elements all windows read, the padding left out.
std::int64_t elements_read(const Window2d& w, const Shape& in, const Shape& out) {
  std::int64_t rows = 0, columns = 0;
  for (std::int64_t o = 0; o < out[2]; ++o) rows += pool_range(w, 0, o, in[2]).hi - pool_range(w, 0, o, in[2]).lo;
  for (std::int64_t o = 0; o < out[3]; ++o) columns += pool_range(w, 1, o, in[3]).hi - pool_range(w, 1, o, in[3]).lo;
  return out[0] * out[1] * rows * columns;
}

}  // namespace

// One comparison an element read but the first of a window.
Cost MaxPool2d::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(elements_read(attrs, in[0].shape, out[0].shape) - out[0].shape.count(), in, out);
}

Tensors MaxPool2d::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  if (!cotangents[0].defined()) return Tensors(1);
  const Shape& shape = saved.input_meta(0).shape;
  return {apply<MaxPool2dGrad>({{shape[2], shape[3]}}, {}, cotangents[0], saved.output(1))};
}

template <class Real>
void MaxPool2d::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    const Real* values = in[0].real + plane * x[2] * x[3];
    for (std::int64_t oh = 0; oh < y[2]; ++oh) {
      for (std::int64_t ow = 0; ow < y[3]; ++ow, ++at) {
        const Range rows = pool_range(attrs, 0, oh, x[2]);
        const Range columns = pool_range(attrs, 1, ow, x[3]);
        std::int64_t best = rows.lo * x[3] + columns.lo;
        for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
          for (std::int64_t w = columns.lo; w < columns.hi; ++w) {
            const std::int64_t i = h * x[3] + w;
            const bool nan = static_cast<double>(values[best]) != static_cast<double>(values[best]);
            if (i == rows.lo * x[3] + columns.lo) continue;
            const bool larger = !(values[i] <= values[best]);
            if (larger && !nan) best = i;
          }
        }
        out[0].real[at] = values[best];
        out[1].index[at] = best;
      }
    }
  }
}

std::vector<Sample<MaxPool2d::Attrs>> MaxPool2d::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const auto& [label, c] : pool_cases()) samples.push_back({label, c.second, {{c.first, Fill::distinct()}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(MaxPool2d);

Metas MaxPool2dGrad::infer(const Attrs& attrs, MetasIn in) {
  const Meta& dy = in[0];
  if (dy.shape.rank() != 4) fail<ShapeError>(name, "operand 0: shape {}; (N,C,H,W) wanted", to_string(dy.shape));
  if (!is_floating(dy.dtype)) fail<DTypeError>(name, "operand 0: {} is not a floating dtype", name_of(dy.dtype));
  if (in[1].dtype != DType::i64) fail<DTypeError>(name, "operand 1: {}; i64 wanted", name_of(in[1].dtype));
  if (!(in[1].shape == dy.shape)) {
    fail<ShapeError>(name, "operand 1: shape {} does not match {}", to_string(in[1].shape), to_string(dy.shape));
  }
  if (attrs.size[0] < 0 || attrs.size[1] < 0) fail<ValueError>(name, "image of {} x {}", attrs.size[0], attrs.size[1]);
  return {{Shape{dy.shape[0], dy.shape[1], attrs.size[0], attrs.size[1]}, dy.dtype}};
}

Cost MaxPool2dGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(in[0].shape.count(), in, out); }

Tensors MaxPool2dGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void MaxPool2dGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t from = in[0].shape[2] * in[0].shape[3];
  const std::int64_t to = attrs.size[0] * attrs.size[1];
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) out[0].real[i] = Real(0);
  for (std::int64_t plane = 0; plane < in[0].shape[0] * in[0].shape[1]; ++plane) {
    for (std::int64_t i = 0; i < from; ++i) {
      const std::int64_t place = in[1].index[plane * from + i];
      if (place < 0 || place >= to) fail<IndexError>(name, "place {} of element {} is outside [0, {})", place, i, to);
      out[0].real[plane * to + place] += in[0].real[plane * from + i];
    }
  }
}

std::vector<Sample<MaxPool2dGrad::Attrs>> MaxPool2dGrad::samples() {
  return {{"odd", {{5, 7}}, {{{2, 3, 4, 4}}, {{2, 3, 4, 4}, Fill::index(0, 35), DType::i64}}},
          {"one", {{1, 1}}, {{{1, 1, 1, 1}}, {{1, 1, 1, 1}, Fill::index(0, 1), DType::i64}}},
          {"empty", {{4, 4}}, {{{0, 3, 2, 2}}, {{0, 3, 2, 2}, Fill::index(0, 1), DType::i64}}}};
}

LAMINA_INSTANTIATE_REFERENCE(MaxPool2dGrad);

}  // namespace lamina
