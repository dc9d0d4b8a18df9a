#include <algorithm>

#include "lamina/kernels/conv2d/op.hpp"
#include "lamina/kernels/conv2d/plan.hpp"
#include "lamina/kernels/cpu/gemm.hpp"
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

Support supports(const Conv2d::Attrs&, Operands in, Operands out) {
  return all_floating<DType::f32>(in, out) ? Support::yes() : Support::no("other dtype");
}
Support supports_input_grad(const Conv2dInputGrad::Attrs&, Operands in, Operands out) {
  return all_floating<DType::f32>(in, out) ? Support::yes() : Support::no("other dtype");
}
Support supports_weight_grad(const Conv2dWeightGrad::Attrs&, Operands in, Operands out) {
  return all_floating<DType::f32>(in, out) ? Support::yes() : Support::no("other dtype");
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
  c.out_plane = y[2] * y[3];
  c.out_row = y[3];
  c.out_column = 1;
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
  c.out_plane = dx[2] * dx[3];
  c.out_row = a.stride[0] * dx[3];
  c.out_column = a.stride[1];
  c.weight_output = w[2] * w[3];
  c.weight_channel = w[1] * c.weight_output;
  c.weight_group = c.channels * c.weight_channel;
  c.weight_row = w[3];
  for (std::int64_t i = 0; i < std::min(a.stride[0], dx[2]); ++i) {
    const Taps rows = backward_taps(a, 0, w[2], i);
    const std::int64_t height = (dx[2] - i + a.stride[0] - 1) / a.stride[0];
    const TapAxisOwner row_phases(rows, 1, dy[2], height, false), row_copies(rows, 1, dy[2], height, true);
    for (std::int64_t j = 0; j < std::min(a.stride[1], dx[3]); ++j) {
      const Taps columns = backward_taps(a, 1, w[3], j);
      const std::int64_t width = (dx[3] - j + a.stride[1] - 1) / a.stride[1];
      const TapAxisOwner column_phases(columns, 1, dy[3], width, false), column_copies(columns, 1, dy[3], width, true);
      c.out = launch.out[0].as<float>() + i * dx[3] + j;
      c.rows = row_phases.axis();
      c.columns = column_phases.axis();
      c.row_copies = row_copies.axis();
      c.column_copies = column_copies.axis();
      run(c, launch.executor, launch.pool);
    }
  }
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

template <>
std::span<const Variant> cpu_variants<Conv2d>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(Conv2d, supports, "conv2d.cpu.direct.f32", conv2d, true)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Conv2dInputGrad>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(Conv2dInputGrad, supports_input_grad,
                                                          "conv2d_input_grad.cpu.direct.f32", conv2d_input_grad, true)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<Conv2dWeightGrad>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(
      Conv2dWeightGrad, supports_weight_grad, "conv2d_weight_grad.cpu.direct.f32", conv2d_weight_grad, true)};
  return table;
}

}  // namespace lamina
