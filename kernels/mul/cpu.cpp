#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/mul/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/mul/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Mul>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Mul, "mul", mul)};
  return table;
}

}  // namespace lamina
