#include <algorithm>
#include <cstring>

#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/elementwise.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/copy/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

Support supports_same(const Copy::Attrs&, Operands in, Operands out) {
  return in[0].dtype == out[0].dtype ? Support::yes() : Support::no("copies without conversion only");
}

// Moves elements of 1, 2, 4 or 8 bytes, whatever they mean.
template <class T>
void move_rows(const Launch<Copy::Attrs>& launch, const StridedRows& rows) {
  const T* x = launch.in[0].as<const T>();
  T* y = launch.out[0].as<T>();
  const std::int64_t rows_a_block = rows.inner >= kElementwiseBlock ? 1 : kElementwiseBlock / rows.inner;
  launch.executor.run((rows.rows + rows_a_block - 1) / rows_a_block, [&](std::int64_t block) {
    const std::int64_t end = std::min(rows.rows, (block + 1) * rows_a_block);
    for (std::int64_t row = block * rows_a_block; row < end; ++row) {
      const T* from = x + rows.start(0, row);
      T* to = y + row * rows.inner;
      if (rows.step[0] == 1) {
        std::memcpy(to, from, static_cast<std::size_t>(rows.inner) * sizeof(T));
      } else {
        for (std::int64_t i = 0; i < rows.inner; ++i) to[i] = from[i * rows.step[0]];
      }
    }
  });
}

void move_elements(const Launch<Copy::Attrs>& launch) {
  if (launch.out[0].count() == 0) return;
  const StridedRows rows = strided_rows(launch.out[0].shape(), launch.in);
  switch (size_of(launch.in[0].dtype)) {
    case 1: return move_rows<std::uint8_t>(launch, rows);
    case 2: return move_rows<std::uint16_t>(launch, rows);
    case 4: return move_rows<std::uint32_t>(launch, rows);
    default: return move_rows<std::uint64_t>(launch, rows);
  }
}

template <DType from, DType to>
Support supports_conversion(const Copy::Attrs&, Operands in, Operands out) {
  return in[0].dtype == from && out[0].dtype == to ? Support::yes() : Support::no("other dtypes");
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Copy>() {
  static constexpr Variant table[] = {
      variant<Copy, supports_same, move_elements>("copy.cpu.rows", Isa::baseline, false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f32, DType::bf16>), "copy.cpu.vector.f32_bf16", f32_to_bf16, false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::bf16, DType::f32>), "copy.cpu.vector.bf16_f32", bf16_to_f32, false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f32, DType::f16>), "copy.cpu.vector.f32_f16", f32_to_f16, false),
      LAMINA_ISA_VARIANTS(Copy, (supports_conversion<DType::f16, DType::f32>), "copy.cpu.vector.f16_f32", f16_to_f32, false),
  };
  return table;
}

}  // namespace lamina
