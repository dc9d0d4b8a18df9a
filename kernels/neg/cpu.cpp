#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/neg/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/neg/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Neg>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Neg, "neg", neg_lanes)};
  return table;
}

}  // namespace lamina
