#include "lamina/kernels/sum/op.hpp"

#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/sum/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Sum>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Sum, "sum", sum)};
  return table;
}

}  // namespace lamina
