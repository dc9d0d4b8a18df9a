#include "lamina/kernels/attention/op.hpp"
#include "lamina/kernels/cpu/gemm.hpp"
#include "lamina/kernels/cpu/scratch.hpp"
#include "lamina/kernels/cpu/table.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/attention/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

template <DType dtype, std::size_t which>
Support supports_dtype(const Attention::Attrs&, Operands in, Operands) {
  return in[which].dtype == dtype ? Support::yes() : Support::no("other dtype");
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Attention>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(Attention, (supports_dtype<DType::f32, 0>),
                                                          "attention.cpu.fused.f32", attention<float>, false),
                                      LAMINA_ISA_VARIANTS(Attention, (supports_dtype<DType::bf16, 0>),
                                                          "attention.cpu.fused.bf16", attention<BFloat16>, false),
                                      LAMINA_ISA_VARIANTS(Attention, (supports_dtype<DType::f16, 0>),
                                                          "attention.cpu.fused.f16", attention<Half>, false)};
  return table;
}

template <>
std::span<const Variant> cpu_variants<AttentionGrad>() {
  static constexpr Variant table[] = {
      LAMINA_ISA_VARIANTS(AttentionGrad, (supports_dtype<DType::f32, 1>), "attention_grad.cpu.fused.f32",
                          attention_grad<float>, false),
      LAMINA_ISA_VARIANTS(AttentionGrad, (supports_dtype<DType::bf16, 1>), "attention_grad.cpu.fused.bf16",
                          attention_grad<BFloat16>, false),
      LAMINA_ISA_VARIANTS(AttentionGrad, (supports_dtype<DType::f16, 1>), "attention_grad.cpu.fused.f16",
                          attention_grad<Half>, false)};
  return table;
}

}  // namespace lamina
