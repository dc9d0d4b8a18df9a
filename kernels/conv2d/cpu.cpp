#include <algorithm>
#include <limits>

#include "lamina/kernels/conv2d/op.hpp"
#include "lamina/kernels/conv2d/plan.hpp"
#include "lamina/kernels/cpu/gemm.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/scratch.hpp"
#include "lamina/kernels/cpu/table.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/conv2d/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

TapAxisOwner::TapAxisOwner(std::span<const Tap> taps, std::int64_t step, std::int64_t extent, std::int64_t size,
                           bool copies) {
  for (const Tap& tap : taps) {
    int which = -1;
    for (std::size_t k = 0; k < start_.size() && !copies; ++k) {
      if ((tap.shift - start_[k]) % step == 0) which = static_cast<int>(k);
    }
    if (which < 0) {
      which = static_cast<int>(start_.size());
      start_.push_back(tap.shift);
    }
    auto& start = start_[static_cast<std::size_t>(which)];
    start = std::min(start, tap.shift);
    class_.push_back(which);
    index_.push_back(tap.index);
  }
  for (std::size_t t = 0; t < taps.size(); ++t) {
    offset_.push_back((taps[t].shift - start_[static_cast<std::size_t>(class_[t])]) / step);
    axis_.extra = std::max(axis_.extra, offset_.back());
  }
  axis_.step = step;
  axis_.extent = extent;
  axis_.size = size;
  axis_.taps = static_cast<int>(taps.size());
  axis_.classes = static_cast<int>(start_.size());
  axis_.start = start_.data();
  axis_.offset = offset_.data();
  axis_.index = index_.data();
  axis_.tap_class = class_.data();
}

namespace {

using Taps = std::vector<TapAxisOwner::Tap>;

Taps forward_taps(const Conv2dAttrs& a, std::size_t d, std::int64_t extent) {
  Taps taps;
  for (std::int64_t k = 0; k < extent; ++k) taps.push_back({k, k * a.dilation[d] - a.padding[d]});
  return taps;
}

// x position phase + s i is reached from output position (phase + s i + padding - dilation k) / s.
Taps backward_taps(const Conv2dAttrs& a, std::size_t d, std::int64_t extent, std::int64_t phase) {
  Taps taps;
  for (std::int64_t k = 0; k < extent; ++k) {
    const std::int64_t at = phase + a.padding[d] - a.dilation[d] * k;
    if (at % a.stride[d] == 0) taps.push_back({k, at / a.stride[d]});
  }
  return taps;
}

// The phases of the outputs along one dim. All read one class of the source, which begins where the first tap does.
struct PhaseAxis {
  std::int64_t first = 0;
  std::vector<std::int64_t> start, offset, index;
  std::vector<int> tap_class;
  TapAxis axis;
};
std::vector<PhaseAxis> phases_of(const Conv2dAttrs& a, std::size_t d, std::int64_t kernel, std::int64_t source,
                                 std::int64_t outputs) {
  std::vector<PhaseAxis> phases(static_cast<std::size_t>(std::min(a.stride[d], outputs)));
  std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = std::numeric_limits<std::int64_t>::min();
  for (std::size_t i = 0; i < phases.size(); ++i) {
    phases[i].first = static_cast<std::int64_t>(i);
    for (const TapAxisOwner::Tap& tap : backward_taps(a, d, kernel, phases[i].first)) {
      phases[i].index.push_back(tap.index);
      phases[i].offset.push_back(tap.shift);
      low = std::min(low, tap.shift);
      high = std::max(high, tap.shift);
    }
  }
  if (low > high) low = high = 0;  // no tap at all
  for (PhaseAxis& p : phases) {
    for (std::int64_t& offset : p.offset) offset -= low;
    p.start = {low};
    p.tap_class.assign(p.index.size(), 0);
    p.axis.extent = source;
    p.axis.size = (outputs - p.first + a.stride[d] - 1) / a.stride[d];
    p.axis.extra = high - low;
    p.axis.taps = static_cast<int>(p.index.size());
    p.axis.classes = 1;
    p.axis.start = p.start.data();
    p.axis.offset = p.offset.data();
    p.axis.index = p.index.data();
    p.axis.tap_class = p.tap_class.data();
  }
  return phases;
}

// x, weight and y of the convolution, wherever an op has them.
Support supports_pointwise(const Conv2dAttrs& a, const Operand& x, const Operand& weight, const Operand& y) {
  const Shape& w = weight.shape();
  if (w[2] != 1 || w[3] != 1 || a.stride[0] != 1 || a.stride[1] != 1 || a.padding[0] != 0 || a.padding[1] != 0 ||
      a.groups != 1) {
    return Support::no("kernels of 1 x 1 with stride 1, no padding and one group only");
  }
  if (w[0] < 24 || w[1] < 24) return Support::no("few channels");
  return x.count() > 0 && y.count() > 0 ? Support::yes() : Support::no("empty");
}
template <class O, DType dtype>
Support supports_product(const typename O::Attrs& attrs, Operands in, Operands out) {
  if (!all_floating<dtype>(in, out)) return Support::no("other dtype");
  if constexpr (std::is_same_v<O, Conv2d>) return supports_pointwise(attrs, in[0], in[1], out[0]);
  if constexpr (std::is_same_v<O, Conv2dInputGrad>) return supports_pointwise(attrs.conv, out[0], in[1], in[0]);
  if constexpr (std::is_same_v<O, Conv2dWeightGrad>) return supports_pointwise(attrs.conv, in[1], out[0], in[0]);
}

}  // namespace

void plan_conv2d(const Launch<Conv2d::Attrs>& launch, RunTapConv run) {
  const Shape &x = launch.in[0].shape(), &w = launch.in[1].shape(), &y = launch.out[0].shape();
  if (y.count() == 0) return;
  const Conv2dAttrs& a = launch.attrs;
  const Taps rows = forward_taps(a, 0, w[2]), columns = forward_taps(a, 1, w[3]);
  const TapAxisOwner row_phases(rows, a.stride[0], x[2], y[2], false), row_copies(rows, a.stride[0], x[2], y[2], true);
  const TapAxisOwner column_phases(columns, a.stride[1], x[3], y[3], false),
      column_copies(columns, a.stride[1], x[3], y[3], true);
  TapConv c;
  c.images = x[0];
  c.groups = a.groups;
  c.channels = w[1];
  c.outputs = w[0] / a.groups;
  c.in = launch.in[0].as<const float>();
  c.weight = launch.in[1].as<const float>();
  c.bias = launch.in.size() > 2 ? launch.in[2].as<const float>() : nullptr;
  c.out = launch.out[0].as<float>();
  c.height = y[2];
  c.width = y[3];
  c.weight_channel = w[2] * w[3];
  c.weight_output = w[1] * c.weight_channel;
  c.weight_group = c.outputs * c.weight_output;
  c.weight_row = w[3];
  c.rows = row_phases.axis();
  c.columns = column_phases.axis();
  c.row_copies = row_copies.axis();
  c.column_copies = column_copies.axis();
  run(c, launch.executor, launch.pool);
}

void plan_conv2d_input_grad(const Launch<Conv2dInputGrad::Attrs>& launch, RunTapConv run) {
  const Shape &dy = launch.in[0].shape(), &w = launch.in[1].shape(), &dx = launch.out[0].shape();
  if (dx.count() == 0) return;
  const Conv2dAttrs& a = launch.attrs.conv;
  TapConv c;
  c.images = dx[0];
  c.groups = a.groups;
  c.channels = w[0] / a.groups;
  c.outputs = w[1];
  c.in = launch.in[0].as<const float>();
  c.weight = launch.in[1].as<const float>();
  c.out = launch.out[0].as<float>();
  c.height = dx[2];
  c.width = dx[3];
  c.weight_output = w[2] * w[3];
  c.weight_channel = w[1] * c.weight_output;
  c.weight_group = c.channels * c.weight_channel;
  c.weight_row = w[3];
  std::vector<PhaseAxis> rows = phases_of(a, 0, w[2], dy[2], dx[2]), columns = phases_of(a, 1, w[3], dy[3], dx[3]);
  std::vector<TapPhase> phases;
  for (const PhaseAxis& row : rows) {
    for (const PhaseAxis& column : columns) phases.push_back({row.axis, column.axis, row.first, column.first});
  }
  c.step[0] = a.stride[0];
  c.step[1] = a.stride[1];
  c.phases = phases.data();
  c.phase_count = static_cast<std::int64_t>(phases.size());
  c.rows = rows[0].axis;
  c.columns = columns[0].axis;
  const TapAxisOwner row_copies(backward_taps(a, 0, w[2], 0), 1, dy[2], c.rows.size, true),
      column_copies(backward_taps(a, 1, w[3], 0), 1, dy[3], c.columns.size, true);
  c.row_copies = row_copies.axis();
  c.column_copies = column_copies.axis();
  run(c, launch.executor, launch.pool);
}

void plan_conv2d_weight_grad(const Launch<Conv2dWeightGrad::Attrs>& launch, RunTapWeightGrad run) {
  const Shape &dy = launch.in[0].shape(), &x = launch.in[1].shape(), &dw = launch.out[0].shape();
  if (dw.count() == 0) return;
  const Conv2dAttrs& a = launch.attrs.conv;
  const TapAxisOwner rows(forward_taps(a, 0, dw[2]), a.stride[0], x[2], dy[2], false);
  const TapAxisOwner columns(forward_taps(a, 1, dw[3]), a.stride[1], x[3], dy[3], false);
  TapWeightGrad g;
  g.images = dy[0];
  g.groups = a.groups;
  g.channels = dw[1];
  g.outputs = dw[0] / a.groups;
  g.in = launch.in[1].as<const float>();
  g.dy = launch.in[0].as<const float>();
  g.dw = launch.out[0].as<float>();
  g.rows = rows.axis();
  g.columns = columns.axis();
  run(g, launch.executor, launch.pool);
}

PointwiseSizes pointwise_sizes(const Operand& x, const Operand& y) {
  return {x.shape()[0], x.shape()[1], y.shape()[1], x.shape()[2] * x.shape()[3]};
}

// The direct kernel in all dtypes, and before it the one that is a product.
#define LAMINA_CONV_VARIANTS(O, op, kernel)                                                                            \
  LAMINA_ISA_VARIANTS(O, (supports_product<O, DType::f32>), op ".cpu.product.f32", kernel##_pointwise_in<float>,       \
                      true),                                                                                           \
      LAMINA_ISA_VARIANTS(O, (supports_product<O, DType::bf16>), op ".cpu.product.bf16",                               \
                          kernel##_pointwise_in<BFloat16>, true),                                                      \
      LAMINA_ISA_VARIANTS(O, (supports_product<O, DType::f16>), op ".cpu.product.f16", kernel##_pointwise_in<Half>,    \
                          true),                                                                                       \
      LAMINA_ISA_VARIANTS(O, (supports_floating<O, DType::f32>), op ".cpu.direct.f32", kernel##_in<float>, true),      \
      LAMINA_ISA_VARIANTS(O, (supports_floating<O, DType::bf16>), op ".cpu.direct.bf16", kernel##_in<BFloat16>, true), \
      LAMINA_ISA_VARIANTS(O, (supports_floating<O, DType::f16>), op ".cpu.direct.f16", kernel##_in<Half>, true)

template <>
std::span<const Variant> cpu_variants<Conv2d>() {
  static constexpr Variant table[] = {LAMINA_CONV_VARIANTS(Conv2d, "conv2d", conv2d)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Conv2dInputGrad>() {
  static constexpr Variant table[] = {LAMINA_CONV_VARIANTS(Conv2dInputGrad, "conv2d_input_grad", conv2d_input_grad)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Conv2dWeightGrad>() {
  static constexpr Variant table[] = {LAMINA_CONV_VARIANTS(Conv2dWeightGrad, "conv2d_weight_grad", conv2d_weight_grad)};
  return table;
}

}  // namespace lamina
