#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/scale/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/scale/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Scale>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Scale, "scale", scale)};
  return table;
}

}  // namespace lamina
