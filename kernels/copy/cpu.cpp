#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/cpu/move.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/copy/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

Support supports_same(const Copy::Attrs&, Operands in, Operands out) {
  return in[0].dtype == out[0].dtype ? Support::yes() : Support::no("copies without conversion only");
}

void move_all(const Launch<Copy::Attrs>& launch) {
  const Operand& y = launch.out[0];
  move_elements(y.shape(), size_of(y.dtype), {launch.in[0].data, launch.in[0].layout->strides},
                {y.data, y.layout->strides}, launch.executor);
}

template <DType from, DType to>
Support supports_conversion(const Copy::Attrs&, Operands in, Operands out) {
  return in[0].dtype == from && out[0].dtype == to ? Support::yes() : Support::no("other dtypes");
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Copy>() {
  static constexpr Variant table[] = {
      variant<Copy, supports_same, move_all>("copy.cpu.rows", Isa::baseline, false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f32, DType::bf16>), "copy.cpu.vector.f32_bf16", f32_to_bf16,
                          false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::bf16, DType::f32>), "copy.cpu.vector.bf16_f32", bf16_to_f32,
                          false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f32, DType::f16>), "copy.cpu.vector.f32_f16", f32_to_f16,
                          false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f16, DType::f32>), "copy.cpu.vector.f16_f32", f16_to_f32,
                          false),
  };
  return table;
}

}  // namespace lamina
