#include "lamina/kernels/pad/op.hpp"

#include "lamina/kernels/cpu/move.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

Support always(const Pad::Attrs&, Operands, Operands) { return Support::yes(); }

void move_inside(const Launch<Pad::Attrs>& launch) {
  const Operand &x = launch.in[0], &y = launch.out[0];
  if (x.count() != y.count()) fill_elements(y, launch.attrs.value, launch.executor);
  std::int64_t first = 0;
  for (int i = 0; i < y.shape().rank(); ++i) first += launch.attrs.lo[static_cast<std::size_t>(i)] * y.stride(i);
  move_elements(x.shape(), size_of(x.dtype), {x.data, x.layout->strides},
                {y.data + first * static_cast<std::int64_t>(size_of(y.dtype)), y.layout->strides}, launch.executor);
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Pad>() {
  static constexpr Variant table[] = {variant<Pad, always, move_inside>("pad.cpu.rows", Isa::baseline, false)};
  return table;
}

}  // namespace lamina
