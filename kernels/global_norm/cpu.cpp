#include <algorithm>
#include <cmath>
#include <vector>

#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/global_norm/op.hpp"

namespace lamina {

namespace {

// Blocks in parallel; their sums are added in order, in double.
void norm_of_blocks(const Launch<GlobalNorm::Attrs>& launch, float (*sum_of_squares)(const float*, std::int64_t)) {
  struct Block {
    const float* data;
    std::int64_t count;
  };
  std::vector<Block> blocks;
  for (const Operand& o : launch.in) {
    for (std::int64_t lo = 0; lo < o.count(); lo += kElementwiseBlock) {
      blocks.push_back({o.as<const float>() + lo, std::min(kElementwiseBlock, o.count() - lo)});
    }
  }
  std::vector<float> sums(blocks.size());
  launch.executor.run(static_cast<std::int64_t>(blocks.size()), [&](std::int64_t b) {
    const auto i = static_cast<std::size_t>(b);
    sums[i] = sum_of_squares(blocks[i].data, blocks[i].count);
  });
  double total = 0;
  for (const float s : sums) total += static_cast<double>(s);
  *launch.out[0].as<float>() = static_cast<float>(std::sqrt(total));
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/global_norm/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<GlobalNorm>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(GlobalNorm, (supports_elementwise<GlobalNorm, DType::f32>),
                                                          "global_norm.cpu.vector.f32", global_norm, true)};
  return table;
}

}  // namespace lamina
