#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/exp/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/exp/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Exp>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Exp, "exp", exp_lanes)};
  return table;
}

}  // namespace lamina
