// Conversions between f32 and the 16-bit floating types, from any strides.
#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class From, class To>
void convert_row(const From* x, std::int64_t step, To* y, std::int64_t n) {
  std::int64_t i = 0;
  if (step == 1) {
    for (; i + kLanes <= n; i += kLanes) Lanes<To>::store(y + i, Lanes<From>::load(x + i));
  }
  for (; i < n; ++i) Lanes<To>::put(y + i, Lanes<From>::get(x + i * step));
}

template <class From, class To>
void convert(const Launch<Copy::Attrs>& launch) {
  const Operand& x = launch.in[0];
  const StridedRows rows = strided_rows(launch.out[0].shape(), launch.in);
  if (launch.out[0].count() == 0) return;
  const std::int64_t rows_a_block = rows.inner >= kElementwiseBlock ? 1 : kElementwiseBlock / rows.inner;
  launch.executor.run((rows.rows + rows_a_block - 1) / rows_a_block, [&](std::int64_t block) {
    const std::int64_t end = (block + 1) * rows_a_block < rows.rows ? (block + 1) * rows_a_block : rows.rows;
    for (std::int64_t row = block * rows_a_block; row < end; ++row) {
      convert_row(x.as<const From>() + rows.start(0, row), rows.step[0], launch.out[0].as<To>() + row * rows.inner,
                  rows.inner);
    }
  });
}

void f32_to_bf16(const Launch<Copy::Attrs>& launch) { convert<float, BFloat16>(launch); }
void bf16_to_f32(const Launch<Copy::Attrs>& launch) { convert<BFloat16, float>(launch); }
void f32_to_f16(const Launch<Copy::Attrs>& launch) { convert<float, Half>(launch); }
void f16_to_f32(const Launch<Copy::Attrs>& launch) { convert<Half, float>(launch); }
