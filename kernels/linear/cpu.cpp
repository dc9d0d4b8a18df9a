#include "lamina/kernels/cpu/gemm.hpp"
#include "lamina/kernels/cpu/products.hpp"
#include "lamina/kernels/cpu/scratch.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/linear/op.hpp"

namespace lamina {
namespace {
Products products_of(Operands in, Operands out) {
  return products_of(*in[0].layout, false, *in[1].layout, true, out[0].shape());
}
}  // namespace
}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/linear/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

template <DType dtype, class Attrs>
Support supports_packed(const Attrs&, Operands in, Operands out) {
  return all_floating<dtype>(in, out) ? Support::yes() : Support::no("other dtype");
}
template <DType dtype, class Attrs>
Support supports_rows(const Attrs&, Operands in, Operands out) {
  if (!all_floating<dtype>(in, out)) return Support::no("other dtype");
  return products_of(in, out).by_rows();
}

}  // namespace

#define LAMINA_LINEAR_VARIANTS(O, op, dtype, T)                                                                    \
  LAMINA_ISA_VARIANTS(O, (supports_rows<DType::dtype, O::Attrs>), #op ".cpu.rows." #dtype, op##_rows<T>, false),   \
      LAMINA_ISA_VARIANTS(O, (supports_packed<DType::dtype, O::Attrs>), #op ".cpu.packed." #dtype, op##_packed<T>, \
                          false)

template <>
std::span<const Variant> cpu_variants<Linear>() {
  static constexpr Variant table[] = {LAMINA_LINEAR_VARIANTS(Linear, linear, f32, float),
                                      LAMINA_LINEAR_VARIANTS(Linear, linear, bf16, BFloat16),
                                      LAMINA_LINEAR_VARIANTS(Linear, linear, f16, Half)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<LinearActivated>() {
  static constexpr Variant table[] = {LAMINA_LINEAR_VARIANTS(LinearActivated, linear_activated, f32, float),
                                      LAMINA_LINEAR_VARIANTS(LinearActivated, linear_activated, bf16, BFloat16),
                                      LAMINA_LINEAR_VARIANTS(LinearActivated, linear_activated, f16, Half)};
  return table;
}

}  // namespace lamina
