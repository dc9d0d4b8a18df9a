#include "lamina/kernels/concat/op.hpp"

#include "lamina/kernels/cpu/move.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

Support always(const Concat::Attrs&, Operands, Operands) { return Support::yes(); }

void move_operands(const Launch<Concat::Attrs>& launch) {
  const Operand& y = launch.out[0];
  std::byte* to = y.data;
  for (const Operand& x : launch.in) {
    move_elements(x.shape(), size_of(x.dtype), {x.data, x.layout->strides}, {to, y.layout->strides}, launch.executor);
    to += x.shape()[launch.attrs.dim] * y.stride(launch.attrs.dim) * static_cast<std::int64_t>(size_of(x.dtype));
  }
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Concat>() {
  static constexpr Variant table[] = {variant<Concat, always, move_operands>("concat.cpu.rows", Isa::baseline, false)};
  return table;
}

}  // namespace lamina
