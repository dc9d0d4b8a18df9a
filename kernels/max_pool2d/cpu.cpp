#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/max_pool2d/op.hpp"

namespace lamina {

namespace {

// A plane (one image, one channel) is a block.
void max_pool2d_planes(const Launch<Window2d>& launch) {
  const Shape& x = launch.in[0].shape();
  const Shape& y = launch.out[0].shape();
  if (y.count() == 0) return;
  launch.executor.run(x[0] * x[1], [&](std::int64_t plane) {
    const float* values = launch.in[0].as<const float>() + plane * x[2] * x[3];
    float* best = launch.out[0].as<float>() + plane * y[2] * y[3];
    std::int64_t* places = launch.out[1].as<std::int64_t>() + plane * y[2] * y[3];
    for (std::int64_t oh = 0; oh < y[2]; ++oh) {
      const Range rows = pool_range(launch.attrs, 0, oh, x[2]);
      for (std::int64_t ow = 0; ow < y[3]; ++ow) {
        const Range columns = pool_range(launch.attrs, 1, ow, x[3]);
        std::int64_t place = rows.lo * x[3] + columns.lo;
        float largest = values[place];
        for (std::int64_t h = rows.lo; h < rows.hi; ++h) {
          for (std::int64_t w = columns.lo; w < columns.hi; ++w) {
            const float v = values[h * x[3] + w];
            if (v > largest || (v != v && largest == largest)) {
              largest = v;
              place = h * x[3] + w;
            }
          }
        }
        *best++ = largest;
        *places++ = place;
      }
    }
  });
}

void max_pool2d_grad_planes(const Launch<MaxPool2dGrad::Attrs>& launch) {
  const Shape& y = launch.in[0].shape();
  const std::int64_t from = y[2] * y[3];
  const std::int64_t to = launch.attrs.size[0] * launch.attrs.size[1];
  const auto* places = launch.in[1].as<const std::int64_t>();
  for (std::int64_t i = 0; i < y.count(); ++i) {
    if (places[i] < 0 || places[i] >= to) {
      fail<IndexError>(MaxPool2dGrad::name, "place {} of element {} is outside [0, {})", places[i], i, to);
    }
  }
  if (launch.out[0].count() == 0) return;
  launch.executor.run(y[0] * y[1], [&](std::int64_t plane) {
    float* dx = launch.out[0].as<float>() + plane * to;
    const float* dy = launch.in[0].as<const float>() + plane * from;
    for (std::int64_t i = 0; i < to; ++i) dx[i] = 0;
    for (std::int64_t i = 0; i < from; ++i) dx[places[plane * from + i]] += dy[i];
  });
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<MaxPool2d>() {
  static constexpr Variant table[] = {
      variant<MaxPool2d, supports_elementwise<MaxPool2d, DType::f32>, max_pool2d_planes>("max_pool2d.cpu.planes.f32")};
  return table;
}

template <>
std::span<const Variant> cpu_variants<MaxPool2dGrad>() {
  static constexpr Variant table[] = {
      variant<MaxPool2dGrad, supports_elementwise<MaxPool2dGrad, DType::f32>, max_pool2d_grad_planes>(
          "max_pool2d_grad.cpu.planes.f32")};
  return table;
}

}  // namespace lamina
