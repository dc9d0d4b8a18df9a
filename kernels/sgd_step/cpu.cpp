#include "lamina/kernels/cpu/elementwise.hpp"
#include "lamina/kernels/sgd_step/op.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/sgd_step/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<SgdStep>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(SgdStep, (supports_elementwise<SgdStep, DType::f32>),
                                                          "sgd_step.cpu.vector.f32", sgd_step, true)};
  return table;
}

}  // namespace lamina
