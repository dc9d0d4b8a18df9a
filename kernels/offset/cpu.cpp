#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/offset/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/offset/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Offset>() {
  static constexpr Variant table[] = {LAMINA_ELEMENTWISE_VARIANTS(Offset, "offset", offset)};
  return table;
}

}  // namespace lamina
