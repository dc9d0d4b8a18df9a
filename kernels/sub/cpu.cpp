#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/sub/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/sub/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Sub>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Sub, "sub", sub)};
  return table;
}

}  // namespace lamina
