#include "lamina/kernels/avg_pool2d/op.hpp"
#include "lamina/kernels/cpu/elementwise.hpp"

namespace lamina {

namespace {

// Calls f(output index, first input index, rows, columns, divisor) for every window of a plane.
template <class F>
void for_each_window(const AvgPool2dAttrs& a, const Shape& x, const Shape& y, F f) {
  for (std::int64_t oh = 0; oh < y[2]; ++oh) {
    const Range rows = pool_range(a.window, 0, oh, x[2]);
    for (std::int64_t ow = 0; ow < y[3]; ++ow) {
      const Range columns = pool_range(a.window, 1, ow, x[3]);
      const std::int64_t inside = (rows.hi - rows.lo) * (columns.hi - columns.lo);
      const std::int64_t by = a.count_padding ? a.window.kernel[0] * a.window.kernel[1] : inside;
      f(oh * y[3] + ow, rows, columns, static_cast<float>(by));
    }
  }
}

void avg_pool2d_planes(const Launch<AvgPool2dAttrs>& launch) {
  const Shape& x = launch.in[0].shape();
  const Shape& y = launch.out[0].shape();
  if (y.count() == 0) return;
  launch.executor.run(x[0] * x[1], [&](std::int64_t plane) {
    const float* from = launch.in[0].as<const float>() + plane * x[2] * x[3];
    float* to = launch.out[0].as<float>() + plane * y[2] * y[3];
    for_each_window(launch.attrs, x, y, [&](std::int64_t o, Range rows, Range columns, float by) {
      float sum = 0;
      for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
        for (std::int64_t w = columns.lo; w < columns.hi; ++w) sum += from[h * x[3] + w];
      }
      to[o] = sum / by;
    });
  });
}

void avg_pool2d_grad_planes(const Launch<AvgPool2dGrad::Attrs>& launch) {
  const Shape& x = launch.out[0].shape();
  const Shape& y = launch.in[0].shape();
  if (x.count() == 0) return;
  launch.executor.run(x[0] * x[1], [&](std::int64_t plane) {
    const float* from = launch.in[0].as<const float>() + plane * y[2] * y[3];
    float* to = launch.out[0].as<float>() + plane * x[2] * x[3];
    for (std::int64_t i = 0; i < x[2] * x[3]; ++i) to[i] = 0;
    for_each_window(launch.attrs.pool, x, y, [&](std::int64_t o, Range rows, Range columns, float by) {
      const float share = from[o] / by;
      for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
        for (std::int64_t w = columns.lo; w < columns.hi; ++w) to[h * x[3] + w] += share;
      }
    });
  });
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<AvgPool2d>() {
  static constexpr Variant table[] = {
      variant<AvgPool2d, supports_elementwise<AvgPool2d, DType::f32>, avg_pool2d_planes>("avg_pool2d.cpu.planes.f32")};
  return table;
}

template <>
std::span<const Variant> cpu_variants<AvgPool2dGrad>() {
  static constexpr Variant table[] = {
      variant<AvgPool2dGrad, supports_elementwise<AvgPool2dGrad, DType::f32>, avg_pool2d_grad_planes>(
          "avg_pool2d_grad.cpu.planes.f32")};
  return table;
}

}  // namespace lamina
