#include "lamina/kernels/permute/op.hpp"

#include "lamina/kernels/cpu/move.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

Support always(const Permute::Attrs&, Operands, Operands) { return Support::yes(); }

void move_permuted(const Launch<Permute::Attrs>& launch) {
  const Operand &x = launch.in[0], &y = launch.out[0];
  Strides strides{};
  for (int i = 0; i < y.shape().rank(); ++i) {
    const auto d = static_cast<std::size_t>(i);
    strides[d] = x.stride(launch.attrs.order[d]);
  }
  move_elements(y.shape(), size_of(y.dtype), {x.data, strides}, {y.data, y.layout->strides}, launch.executor);
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Permute>() {
  static constexpr Variant table[] = {
      variant<Permute, always, move_permuted>("permute.cpu.tiled", Isa::baseline, false)};
  return table;
}

}  // namespace lamina
