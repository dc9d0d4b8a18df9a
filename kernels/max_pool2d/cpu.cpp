#include <limits>
#include <type_traits>

#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/max_pool2d/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/max_pool2d/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

template <DType dtype>
Support supports_places(const Window2d& window, Operands in, Operands out) {
  if (!all_floating<dtype>(in, out)) return Support::no("other dtype");
  const Shape& x = in[0].shape();
  // The last lanes of a row count on past the plane.
  const std::int64_t room = std::numeric_limits<std::int32_t>::max() / 2 - 64 * window.stride[1] - window.kernel[1];
  return x[2] * x[3] < room ? Support::yes() : Support::no("places beyond 30 bits");
}

// Places are any: a plane is added up element by element, in floats.
template <class T>
void max_pool2d_grad(const Launch<MaxPool2dGrad::Attrs>& launch) {
  const Shape& y = launch.in[0].shape();
  const std::int64_t from = y[2] * y[3], to = launch.attrs.size[0] * launch.attrs.size[1];
  const std::int64_t planes = y[0] * y[1], planes_a_block = block_of(from + to);
  run_blocks(launch.executor, ceil_div(planes, planes_a_block), [&](std::int64_t block) {
    constexpr bool direct = std::is_same_v<T, float>;
    const Scratch scratch = Scratch::of_floats(launch.pool, direct ? 0 : to);
    const std::int64_t end = std::min(planes, (block + 1) * planes_a_block);
    for (std::int64_t plane = block * planes_a_block; plane < end; ++plane) {
      const T* dy = launch.in[0].as<const T>() + plane * from;
      const std::int64_t* places = launch.in[1].as<const std::int64_t>() + plane * from;
      T* dx = launch.out[0].as<T>() + plane * to;
      float* sums = scratch.floats();
      if constexpr (direct) sums = dx;
      std::fill_n(sums, to, 0.0f);
      for (std::int64_t i = 0; i < from; ++i) {
        if (places[i] < 0 || places[i] >= to) {
          fail<IndexError>(MaxPool2dGrad::name, "place {} of element {} is outside [0, {})", places[i],
                           plane * from + i, to);
        }
        sums[places[i]] += static_cast<float>(dy[i]);
      }
      if constexpr (!direct) std::transform(sums, sums + to, dx, [](float sum) { return T(sum); });
    }
  });
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<MaxPool2d>() {
  static constexpr Variant table[] = {
      LAMINA_ISA_VARIANTS(MaxPool2d, supports_places<DType::f32>, "max_pool2d.cpu.vector.f32", max_pool2d<float>, true),
      LAMINA_ISA_VARIANTS(MaxPool2d, supports_places<DType::bf16>, "max_pool2d.cpu.vector.bf16", max_pool2d<BFloat16>,
                          true),
      LAMINA_ISA_VARIANTS(MaxPool2d, supports_places<DType::f16>, "max_pool2d.cpu.vector.f16", max_pool2d<Half>, true)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<MaxPool2dGrad>() {
  static constexpr Variant table[] = {
      variant<MaxPool2dGrad, supports_floating<MaxPool2dGrad, DType::f32>, max_pool2d_grad<float>>(
          "max_pool2d_grad.cpu.planes.f32"),
      variant<MaxPool2dGrad, supports_floating<MaxPool2dGrad, DType::bf16>, max_pool2d_grad<BFloat16>>(
          "max_pool2d_grad.cpu.planes.bf16"),
      variant<MaxPool2dGrad, supports_floating<MaxPool2dGrad, DType::f16>, max_pool2d_grad<Half>>(
          "max_pool2d_grad.cpu.planes.f16")};
  return table;
}

}  // namespace lamina
