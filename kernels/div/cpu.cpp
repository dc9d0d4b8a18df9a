#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/div/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/div/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Div>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Div, "div", div)};
  return table;
}

}  // namespace lamina
