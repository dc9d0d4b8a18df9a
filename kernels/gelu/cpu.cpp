#include "lamina/kernels/gelu/op.hpp"

#include "lamina/kernels/cpu/elementwise.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/gelu/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

// The erf form is the reference's; training uses the tanh form.
template <class O, DType dtype>
Support supports_tanh_form(const Gelu::Attrs& attrs, Operands in, Operands out) {
  if (!attrs.tanh_form) return Support::no("tanh form only");
  return supports_elementwise<O, dtype>(attrs, in, out);
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Gelu>() {
  static constexpr Variant table[] = {
      LAMINA_ISA_VARIANTS(Gelu, (supports_tanh_form<Gelu, DType::f32>), "gelu.cpu.vector.f32", gelu<float>, false),
      LAMINA_ISA_VARIANTS(Gelu, (supports_tanh_form<Gelu, DType::bf16>), "gelu.cpu.vector.bf16", gelu<BFloat16>, false),
      LAMINA_ISA_VARIANTS(Gelu, (supports_tanh_form<Gelu, DType::f16>), "gelu.cpu.vector.f16", gelu<Half>, false)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<GeluGrad>() {
  static constexpr Variant table[] = {
      LAMINA_ISA_VARIANTS(GeluGrad, (supports_tanh_form<GeluGrad, DType::f32>), "gelu_grad.cpu.vector.f32",
                          gelu_grad<float>, false),
      LAMINA_ISA_VARIANTS(GeluGrad, (supports_tanh_form<GeluGrad, DType::bf16>), "gelu_grad.cpu.vector.bf16",
                          gelu_grad<BFloat16>, false),
      LAMINA_ISA_VARIANTS(GeluGrad, (supports_tanh_form<GeluGrad, DType::f16>), "gelu_grad.cpu.vector.f16",
                          gelu_grad<Half>, false)};
  return table;
}

}  // namespace lamina
