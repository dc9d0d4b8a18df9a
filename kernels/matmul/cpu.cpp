#include "lamina/kernels/cpu/gemm.hpp"
#include "lamina/kernels/cpu/products.hpp"
#include "lamina/kernels/cpu/scratch.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/matmul/op.hpp"

namespace lamina {
namespace {
Products products_of(const Matmul::Attrs& attrs, Operands in, Operands out) {
  return products_of(*in[0].layout, attrs.transpose_a, *in[1].layout, attrs.transpose_b, out[0].shape());
}
}  // namespace
}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/matmul/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

namespace {

template <DType dtype>
Support supports_packed(const Matmul::Attrs&, Operands in, Operands out) {
  return all_floating<dtype>(in, out) ? Support::yes() : Support::no("other dtype");
}
template <DType dtype>
Support supports_rows(const Matmul::Attrs& attrs, Operands in, Operands out) {
  if (!all_floating<dtype>(in, out)) return Support::no("other dtype");
  return products_of(attrs, in, out).by_rows();
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Matmul>() {
  static constexpr Variant table[] = {
      LAMINA_ISA_VARIANTS(Matmul, supports_rows<DType::f32>, "matmul.cpu.rows.f32", matmul_rows<float>, false),
      LAMINA_ISA_VARIANTS(Matmul, supports_packed<DType::f32>, "matmul.cpu.packed.f32", matmul_packed<float>, false),
      LAMINA_ISA_VARIANTS(Matmul, supports_rows<DType::bf16>, "matmul.cpu.rows.bf16", matmul_rows<BFloat16>, false),
      LAMINA_ISA_VARIANTS(Matmul, supports_packed<DType::bf16>, "matmul.cpu.packed.bf16", matmul_packed<BFloat16>,
                          false),
      LAMINA_ISA_VARIANTS(Matmul, supports_rows<DType::f16>, "matmul.cpu.rows.f16", matmul_rows<Half>, false),
      LAMINA_ISA_VARIANTS(Matmul, supports_packed<DType::f16>, "matmul.cpu.packed.f16", matmul_packed<Half>, false)};
  return table;
}

}  // namespace lamina
