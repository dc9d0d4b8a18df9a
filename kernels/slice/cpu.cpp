#include "lamina/kernels/cpu/move.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/slice/op.hpp"

namespace lamina {

namespace {

Support always(const Slice::Attrs&, Operands, Operands) { return Support::yes(); }
Support always_grad(const SliceGrad::Attrs&, Operands, Operands) { return Support::yes(); }

// The strides of an operand read or written at every step-th element of a dim.
Strides stepped(const Layout& layout, int dim, std::int64_t step) {
  Strides strides = layout.strides;
  strides[static_cast<std::size_t>(dim)] *= step;
  return strides;
}

std::byte* at(const Operand& o, int dim, std::int64_t index) {
  return o.data + o.stride(dim) * index * static_cast<std::int64_t>(size_of(o.dtype));
}

void move_slice(const Launch<Slice::Attrs>& launch) {
  const Slice::Attrs& a = launch.attrs;
  const Operand &x = launch.in[0], &y = launch.out[0];
  if (y.count() == 0) return;
  move_elements(y.shape(), size_of(y.dtype), {at(x, a.dim, a.lo), stepped(*x.layout, a.dim, a.step)},
                {y.data, y.layout->strides}, launch.executor);
}

void move_slice_grad(const Launch<SliceGrad::Attrs>& launch) {
  const SliceGrad::Attrs& a = launch.attrs;
  const Operand &dy = launch.in[0], &dx = launch.out[0];
  if (dy.count() != dx.count()) fill_elements(dx, 0, launch.executor);
  if (dy.count() == 0) return;
  move_elements(dy.shape(), size_of(dy.dtype), {dy.data, dy.layout->strides},
                {at(dx, a.dim, a.lo), stepped(*dx.layout, a.dim, a.step)}, launch.executor);
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Slice>() {
  static constexpr Variant table[] = {variant<Slice, always, move_slice>("slice.cpu.rows", Isa::baseline, false)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<SliceGrad>() {
  static constexpr Variant table[] = {
      variant<SliceGrad, always_grad, move_slice_grad>("slice_grad.cpu.rows", Isa::baseline, false)};
  return table;
}

}  // namespace lamina
