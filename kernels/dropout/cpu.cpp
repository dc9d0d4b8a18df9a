#include <cmath>

#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/dropout/op.hpp"

namespace lamina {

namespace {

// uniform >= rate is (word >> 8) >= rate 2^24: a comparison of integers, and the same for every variant.
struct DropoutPlan {
  std::uint32_t key0, key1;
  std::int32_t threshold;
  float scale;
  std::int64_t first_example;
};

DropoutPlan dropout_plan(const Dropout::Attrs& attrs) {
  const PhiloxKey key = attrs.rng.key();
  return {key[0], key[1], static_cast<std::int32_t>(std::ceil(attrs.rate * 0x1p24)),
          static_cast<float>(1 / (1 - attrs.rate)), attrs.first_example};
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/dropout/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Dropout>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Dropout, "dropout", dropout)};
  return table;
}

}  // namespace lamina
