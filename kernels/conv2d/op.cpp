#include "lamina/kernels/conv2d/op.hpp"

#include <limits>

#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/sum/op.hpp"

namespace lamina {

namespace {

constexpr std::int64_t kMaxAttribute = std::numeric_limits<std::int32_t>::max();

void check_attrs(std::string_view op, const Conv2dAttrs& a) {
  auto check = [&](std::string_view what, std::int64_t value, std::int64_t least) {
    if (value < least || value > kMaxAttribute) {
      fail<ValueError>(op, "{} {}; allowed: {} to {}", what, value, least, kMaxAttribute);
    }
  };
  for (std::size_t d = 0; d < 2; ++d) {
    check("stride", a.stride[d], 1);
    check("padding", a.padding[d], 0);
    check("dilation", a.dilation[d], 1);
  }
  check("groups", a.groups, 1);
}

void check_operands(std::string_view op, MetasIn in) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i].dtype)) {
      fail<DTypeError>(op, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    }
    if (in[i].dtype != in[0].dtype) {
      fail<DTypeError>(op, "operand {}: {} does not match {} of operand 0", i, name_of(in[i].dtype),
                       name_of(in[0].dtype));
    }
    const int rank = i < 2 ? 4 : 1;
    if (in[i].shape.rank() != rank) {
      fail<ShapeError>(op, "operand {}: shape {} has rank {}, not {}", i, to_string(in[i].shape), in[i].shape.rank(),
                       rank);
    }
  }
}

// Extent of the output along a spatial dim.
std::int64_t output_extent(std::string_view op, const Conv2dAttrs& a, std::size_t d, std::int64_t extent,
                           std::int64_t taps) {
  if (taps < 1 || taps > kMaxAttribute) fail<ShapeError>(op, "a kernel of extent {}", taps);
  if (extent < 0 || extent > kMaxAttribute) fail<ShapeError>(op, "an image of extent {}", extent);
  const std::int64_t padded = extent + 2 * a.padding[d], window = a.dilation[d] * (taps - 1) + 1;
  if (window > padded) {
    fail<ShapeError>(op, "a kernel of extent {} with dilation {} spans {}, more than {} with padding {}", taps,
                     a.dilation[d], window, extent, a.padding[d]);
  }
  return (padded - window) / a.stride[d] + 1;
}

void check_groups(std::string_view op, const Conv2dAttrs& a, std::int64_t outputs) {
  if (outputs % a.groups != 0) fail<ShapeError>(op, "{} output channels in {} groups", outputs, a.groups);
}

// 2 for each tap of each output element, padding included.
std::int64_t flops_of(const Shape& y, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
  return 2 * y.count() * channels * rows * columns;
}

// f(n, group, o, c, row tap, column tap, i, j): o is the output channel, c the channel within the group.
template <class F>
void for_each_product(const Conv2dAttrs& a, const Shape& y, std::int64_t channels, std::int64_t rows,
                      std::int64_t columns, F f) {
  for (std::int64_t n = 0; n < y[0]; ++n) {
    for (std::int64_t o = 0; o < y[1]; ++o) {
      for (std::int64_t i = 0; i < y[2]; ++i) {
        for (std::int64_t j = 0; j < y[3]; ++j) {
          for (std::int64_t c = 0; c < channels; ++c) {
            for (std::int64_t p = 0; p < rows; ++p) {
              for (std::int64_t q = 0; q < columns; ++q) f(n, o / (y[1] / a.groups), o, c, p, q, i, j);
            }
          }
        }
      }
    }
  }
}

// Index of x's element under a tap, or -1 in the padding.
std::int64_t source_index(const Conv2dAttrs& a, const Shape& x, std::int64_t n, std::int64_t c, std::int64_t i,
                          std::int64_t j, std::int64_t p, std::int64_t q) {
  const std::int64_t row = i * a.stride[0] - a.padding[0] + p * a.dilation[0];
  const std::int64_t column = j * a.stride[1] - a.padding[1] + q * a.dilation[1];
  if (row < 0 || row >= x[2] || column < 0 || column >= x[3]) return -1;
  return ((n * x[1] + c) * x[2] + row) * x[3] + column;
}

}  // namespace

Metas Conv2d::infer(const Attrs& a, MetasIn in) {
  check_attrs(name, a);
  check_operands(name, in);
  const Shape &x = in[0].shape, &weight = in[1].shape;
  check_groups(name, a, weight[0]);
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(weight[1], a.groups, &channels) || channels != x[1]) {
    fail<ShapeError>(name, "operand 1: {} channels in {} groups do not match {}; shapes {}, {}", weight[1], a.groups,
                     x[1], to_string(x), to_string(weight));
  }
  if (in.size() > 2 && in[2].shape[0] != weight[0]) {
    fail<ShapeError>(name, "operand 2: {} elements for {} output channels", in[2].shape[0], weight[0]);
  }
  return {
      {Shape{x[0], weight[0], output_extent(name, a, 0, x[2], weight[2]), output_extent(name, a, 1, x[3], weight[3])},
       in[0].dtype}};
}

Cost Conv2d::cost(const Attrs&, MetasIn in, MetasIn out) {
  const Shape& weight = in[1].shape;
  const std::int64_t bias = in.size() > 2 ? out[0].shape.count() : 0;
  return stream_cost(flops_of(out[0].shape, weight[1], weight[2], weight[3]) + bias, in, out);
}

Tensors Conv2d::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(saved.inputs());
  const Shape &x = saved.input_meta(0).shape, &weight = saved.input_meta(1).shape;
  if (needs[0]) gradients[0] = apply<Conv2dInputGrad>({a, {x[2], x[3]}}, {}, cotangents[0], saved.input(1));
  if (needs[1]) gradients[1] = apply<Conv2dWeightGrad>({a, {weight[2], weight[3]}}, {}, cotangents[0], saved.input(0));
  if (saved.inputs() > 2 && needs[2]) gradients[2] = sum(cotangents[0], {0, 2, 3});
  return gradients;
}

template <class Real>
void Conv2d::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const Shape &x = in[0].shape, &w = in[1].shape, &y = out[0].shape;
  for (std::int64_t k = 0; k < y.count(); ++k) out[0].real[k] = Real(0);
  for_each_product(a, y, w[1], w[2], w[3],
                   [&](std::int64_t n, std::int64_t group, std::int64_t o, std::int64_t c, std::int64_t p,
                       std::int64_t q, std::int64_t i, std::int64_t j) {
                     const std::int64_t from = source_index(a, x, n, group * w[1] + c, i, j, p, q);
                     const Real weight = in[1].real[((o * w[1] + c) * w[2] + p) * w[3] + q];
                     out[0].real[((n * y[1] + o) * y[2] + i) * y[3] + j] +=
                         weight * (from < 0 ? Real(0) : in[0].real[from]);
                   });
  if (in.size() > 2) {
    for (std::int64_t k = 0; k < y.count(); ++k) out[0].real[k] += in[2].real[k / (y[2] * y[3]) % y[1]];
  }
}

namespace {

struct Geometry {
  std::string name;
  Conv2dAttrs attrs;
  std::int64_t n, c, h, w, o, kh, kw;
};

// Of what decides the code: every tile width and tail of rows and channels, strides, dilations, groups, sizes 0 and 1.
std::vector<Geometry> geometries() {
  return {{"one", {}, 1, 1, 1, 1, 1, 1, 1},
          {"three", {{1, 1}, {1, 1}, {1, 1}, 1}, 2, 3, 5, 7, 4, 3, 3},
          {"image", {{1, 1}, {1, 1}, {1, 1}, 1}, 1, 1, 14, 28, 16, 3, 3},
          {"wide", {{1, 1}, {1, 1}, {1, 1}, 1}, 1, 5, 3, 32, 20, 3, 3},
          {"deep", {{1, 1}, {1, 1}, {1, 1}, 1}, 1, 45, 2, 7, 33, 3, 3},
          {"rows8", {{1, 1}, {1, 1}, {1, 1}, 1}, 1, 45, 1, 8, 32, 3, 3},
          {"rows14", {{1, 1}, {0, 1}, {1, 1}, 1}, 1, 134, 1, 15, 48, 1, 3},
          {"tiny", {{1, 1}, {1, 1}, {1, 1}, 1}, 5, 6, 2, 2, 33, 3, 3},
          {"vector", {}, 3, 300, 1, 1, 40, 1, 1},
          {"point", {}, 3, 25, 5, 9, 35, 1, 1},
          {"point_stride", {{2, 2}, {0, 0}, {1, 1}, 1}, 2, 19, 7, 10, 18, 1, 1},
          {"stride", {{2, 2}, {1, 1}, {1, 1}, 1}, 2, 18, 9, 12, 17, 3, 3},
          {"stride_remainder", {{3, 2}, {0, 1}, {1, 1}, 1}, 2, 3, 11, 8, 5, 2, 3},
          {"stride_beyond_kernel", {{3, 4}, {1, 0}, {1, 1}, 1}, 2, 4, 9, 11, 3, 2, 2},
          {"padding_beyond_kernel", {{1, 2}, {3, 4}, {1, 1}, 1}, 1, 3, 4, 5, 4, 2, 3},
          {"dilation", {{1, 2}, {2, 3}, {2, 3}, 1}, 2, 5, 9, 13, 6, 3, 3},
          {"row_kernel", {{1, 1}, {0, 3}, {1, 1}, 1}, 1, 4, 3, 17, 9, 1, 7},
          {"column_kernel", {{2, 1}, {2, 0}, {1, 1}, 1}, 1, 4, 17, 3, 9, 5, 1},
          {"groups", {{1, 1}, {1, 1}, {1, 1}, 2}, 2, 6, 6, 5, 10, 3, 3},
          {"groups_wide", {{2, 1}, {1, 1}, {1, 1}, 2}, 1, 8, 6, 9, 66, 3, 3},
          {"depthwise", {{1, 1}, {1, 1}, {1, 1}, 7}, 2, 7, 6, 19, 7, 3, 3},
          {"depthwise_stride", {{2, 2}, {2, 2}, {1, 1}, 5}, 2, 5, 9, 9, 10, 5, 5},
          {"no_images", {{1, 1}, {1, 1}, {1, 1}, 1}, 0, 3, 5, 5, 4, 3, 3},
          {"no_channels", {{1, 1}, {1, 1}, {1, 1}, 1}, 2, 0, 5, 5, 4, 3, 3},
          {"no_outputs", {{1, 1}, {1, 1}, {1, 1}, 1}, 2, 3, 5, 5, 0, 3, 3},
          {"padding_only", {{1, 1}, {1, 1}, {1, 1}, 1}, 2, 3, 0, 4, 5, 2, 2}};
}

Shape output_shape(const Geometry& g) {
  const Meta in[] = {{{g.n, g.c, g.h, g.w}}, {{g.o, g.c / g.attrs.groups, g.kh, g.kw}}};
  return Conv2d::infer(g.attrs, in)[0].shape;
}

}  // namespace

std::vector<Sample<Conv2d::Attrs>> Conv2d::samples() {
  std::vector<Sample<Attrs>> samples;
  int count = 0;
  for (const Geometry& g : geometries()) {
    Sample<Attrs> s{g.name, g.attrs, {{{g.n, g.c, g.h, g.w}}, {{g.o, g.c / g.attrs.groups, g.kh, g.kw}}}};
    if (count++ % 2 == 1) s.inputs.push_back({{g.o}});
    samples.push_back(std::move(s));
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Conv2d);

Metas Conv2dInputGrad::infer(const Attrs& a, MetasIn in) {
  check_attrs(name, a.conv);
  check_operands(name, in);
  const Shape &dy = in[0].shape, &weight = in[1].shape;
  check_groups(name, a.conv, weight[0]);
  if (dy[1] != weight[0]) {
    fail<ShapeError>(name, "operand 1: {} output channels do not match {}; shapes {}, {}", weight[0], dy[1],
                     to_string(dy), to_string(weight));
  }
  for (std::size_t d = 0; d < 2; ++d) {
    const int dim = static_cast<int>(d) + 2;
    if (const std::int64_t extent = output_extent(name, a.conv, d, a.size[d], weight[dim]); extent != dy[dim]) {
      fail<ShapeError>(name, "operand 0: extent {} of dim {}, where {} gives {}", dy[dim], dim, a.size[d], extent);
    }
  }
  std::int64_t channels = 0;
  if (__builtin_mul_overflow(weight[1], a.conv.groups, &channels)) {
    fail<ShapeError>(name, "operand 1: {} channels in {} groups overflow", weight[1], a.conv.groups);
  }
  return {{Shape{dy[0], channels, a.size[0], a.size[1]}, in[0].dtype}};
}

Cost Conv2dInputGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  const Shape& weight = in[1].shape;
  return stream_cost(flops_of(in[0].shape, weight[1], weight[2], weight[3]), in, out);
}

// Linear in both operands: its gradients are the other two of the three.
Tensors Conv2dInputGrad::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(2);
  const Shape& weight = saved.input_meta(1).shape;
  if (needs[0]) gradients[0] = apply<Conv2d>(a.conv, {}, cotangents[0], saved.input(1));
  if (needs[1]) {
    gradients[1] = apply<Conv2dWeightGrad>({a.conv, {weight[2], weight[3]}}, {}, saved.input(0), cotangents[0]);
  }
  return gradients;
}

template <class Real>
void Conv2dInputGrad::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const Shape &dy = in[0].shape, &w = in[1].shape, &dx = out[0].shape;
  for (std::int64_t k = 0; k < dx.count(); ++k) out[0].real[k] = Real(0);
  Real padding(0);
  for_each_product(a.conv, dy, w[1], w[2], w[3],
                   [&](std::int64_t n, std::int64_t group, std::int64_t o, std::int64_t c, std::int64_t p,
                       std::int64_t q, std::int64_t i, std::int64_t j) {
                     const std::int64_t to = source_index(a.conv, dx, n, group * w[1] + c, i, j, p, q);
                     (to < 0 ? padding : out[0].real[to]) += in[1].real[((o * w[1] + c) * w[2] + p) * w[3] + q] *
                                                             in[0].real[((n * dy[1] + o) * dy[2] + i) * dy[3] + j];
                   });
}

std::vector<Sample<Conv2dInputGrad::Attrs>> Conv2dInputGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Geometry& g : geometries()) {
    samples.push_back({g.name, {g.attrs, {g.h, g.w}}, {{output_shape(g)}, {{g.o, g.c / g.attrs.groups, g.kh, g.kw}}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Conv2dInputGrad);

Metas Conv2dWeightGrad::infer(const Attrs& a, MetasIn in) {
  check_attrs(name, a.conv);
  check_operands(name, in);
  const Shape &dy = in[0].shape, &x = in[1].shape;
  check_groups(name, a.conv, dy[1]);
  if (x[0] != dy[0]) fail<ShapeError>(name, "operand 1: {} images do not match {}", x[0], dy[0]);
  if (x[1] % a.conv.groups != 0) {
    fail<ShapeError>(name, "operand 1: {} channels in {} groups", x[1], a.conv.groups);
  }
  for (std::size_t d = 0; d < 2; ++d) {
    const int dim = static_cast<int>(d) + 2;
    if (const std::int64_t extent = output_extent(name, a.conv, d, x[dim], a.size[d]); extent != dy[dim]) {
      fail<ShapeError>(name, "operand 0: extent {} of dim {}, where {} gives {}", dy[dim], dim, x[dim], extent);
    }
  }
  return {{Shape{dy[1], x[1] / a.conv.groups, a.size[0], a.size[1]}, in[0].dtype}};
}

Cost Conv2dWeightGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  const Shape& weight = out[0].shape;
  return stream_cost(flops_of(in[0].shape, weight[1], weight[2], weight[3]), in, out);
}

Tensors Conv2dWeightGrad::vjp(const Attrs& a, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(2);
  const Shape& x = saved.input_meta(1).shape;
  if (needs[0]) gradients[0] = apply<Conv2d>(a.conv, {}, saved.input(1), cotangents[0]);
  if (needs[1]) gradients[1] = apply<Conv2dInputGrad>({a.conv, {x[2], x[3]}}, {}, saved.input(0), cotangents[0]);
  return gradients;
}

template <class Real>
void Conv2dWeightGrad::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  const Shape &dy = in[0].shape, &x = in[1].shape, &dw = out[0].shape;
  for (std::int64_t k = 0; k < dw.count(); ++k) out[0].real[k] = Real(0);
  for_each_product(a.conv, dy, dw[1], dw[2], dw[3],
                   [&](std::int64_t n, std::int64_t group, std::int64_t o, std::int64_t c, std::int64_t p,
                       std::int64_t q, std::int64_t i, std::int64_t j) {
                     const std::int64_t from = source_index(a.conv, x, n, group * dw[1] + c, i, j, p, q);
                     out[0].real[((o * dw[1] + c) * dw[2] + p) * dw[3] + q] +=
                         in[0].real[((n * dy[1] + o) * dy[2] + i) * dy[3] + j] *
                         (from < 0 ? Real(0) : in[1].real[from]);
                   });
}

std::vector<Sample<Conv2dWeightGrad::Attrs>> Conv2dWeightGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Geometry& g : geometries()) {
    samples.push_back({g.name, {g.attrs, {g.kh, g.kw}}, {{output_shape(g)}, {{g.n, g.c, g.h, g.w}}}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Conv2dWeightGrad);

}  // namespace lamina
