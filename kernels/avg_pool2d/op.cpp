#include "lamina/kernels/avg_pool2d/op.hpp"

#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

std::int64_t elements_read(const Window2d& w, const Shape& in, const Shape& out) {
  std::int64_t rows = 0, columns = 0;
  for (std::int64_t o = 0; o < out[2]; ++o) rows += pool_range(w, 0, o, in[2]).hi - pool_range(w, 0, o, in[2]).lo;
  for (std::int64_t o = 0; o < out[3]; ++o) columns += pool_range(w, 1, o, in[3]).hi - pool_range(w, 1, o, in[3]).lo;
  return out[0] * out[1] * rows * columns;
}

double divisor(const AvgPool2dAttrs& a, const Range& rows, const Range& columns) {
  const std::int64_t inside = (rows.hi - rows.lo) * (columns.hi - columns.lo);
  return static_cast<double>(a.count_padding ? a.window.kernel[0] * a.window.kernel[1] : inside);
}

}  // namespace

Metas AvgPool2d::infer(const Attrs& attrs, MetasIn in) {
  return {{pooled_shape(name, attrs.window, in[0]), in[0].dtype}};
}

// An addition an element read, a division a window.
Cost AvgPool2d::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(elements_read(attrs.window, in[0].shape, out[0].shape) + out[0].shape.count(), in, out);
}

Tensors AvgPool2d::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  const Shape& shape = saved.input_meta(0).shape;
  return {apply<AvgPool2dGrad>({attrs, {shape[2], shape[3]}}, {}, cotangents[0])};
}

template <class Real>
void AvgPool2d::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& x = in[0].shape;
  const Shape& y = out[0].shape;
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (std::int64_t oh = 0; oh < y[2]; ++oh) {
      for (std::int64_t ow = 0; ow < y[3]; ++ow, ++at) {
        const Range rows = pool_range(attrs.window, 0, oh, x[2]);
        const Range columns = pool_range(attrs.window, 1, ow, x[3]);
        Real sum(0);
        for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
          for (std::int64_t w = columns.lo; w < columns.hi; ++w) sum += in[0].real[(plane * x[2] + h) * x[3] + w];
        }
        out[0].real[at] = sum / Real(divisor(attrs, rows, columns));
      }
    }
  }
}

std::vector<Sample<AvgPool2d::Attrs>> AvgPool2d::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const bool count_padding : {false, true}) {
    for (const auto& [label, c] : pool_cases()) {
      samples.push_back({count_padding ? label + "_padded" : label, {c.second, count_padding}, {{c.first}}});
    }
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(AvgPool2d);

Metas AvgPool2dGrad::infer(const Attrs& attrs, MetasIn in) {
  if (in[0].shape.rank() != 4) fail<ShapeError>(name, "operand 0: shape {}; (N,C,H,W) wanted", to_string(in[0].shape));
  const Shape shape{in[0].shape[0], in[0].shape[1], attrs.size[0], attrs.size[1]};
  if (!(pooled_shape(name, attrs.pool.window, {shape, in[0].dtype}) == in[0].shape)) {
    fail<ShapeError>(name, "operand 0: {} is not what {} is pooled to", to_string(in[0].shape), to_string(shape));
  }
  return {{shape, in[0].dtype}};
}

Cost AvgPool2dGrad::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(elements_read(attrs.pool.window, out[0].shape, in[0].shape) + in[0].shape.count(), in, out);
}

Tensors AvgPool2dGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void AvgPool2dGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& x = out[0].shape;
  const Shape& y = in[0].shape;
  for (std::int64_t i = 0; i < x.count(); ++i) out[0].real[i] = Real(0);
  std::int64_t at = 0;
  for (std::int64_t plane = 0; plane < x[0] * x[1]; ++plane) {
    for (std::int64_t oh = 0; oh < y[2]; ++oh) {
      for (std::int64_t ow = 0; ow < y[3]; ++ow, ++at) {
        const Range rows = pool_range(attrs.pool.window, 0, oh, x[2]);
        const Range columns = pool_range(attrs.pool.window, 1, ow, x[3]);
        const Real share = in[0].real[at] / Real(divisor(attrs.pool, rows, columns));
        for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
          for (std::int64_t w = columns.lo; w < columns.hi; ++w) out[0].real[(plane * x[2] + h) * x[3] + w] += share;
        }
      }
    }
  }
}

std::vector<Sample<AvgPool2dGrad::Attrs>> AvgPool2dGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const auto& [label, c] : pool_cases()) {
    const Shape pooled = pooled_shape("avg_pool2d", c.second, {c.first, DType::f32});
    samples.push_back({label, {{c.second, false}, {c.first[2], c.first[3]}}, {{pooled}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(AvgPool2dGrad);

}  // namespace lamina
