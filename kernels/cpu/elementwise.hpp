// What the CPU files of elementwise ops share: which problems the vector code supports. Its loops are in
// simd/elementwise.hpp, its number types f32, bf16 and f16.
#pragma once

#include "lamina/kernels/cpu/strided.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

template <class O, DType dtype>
Support supports_elementwise(const typename O::Attrs&, Operands in, Operands out) {
  return all_floating<dtype>(in, out) ? Support::yes() : Support::no("other dtype");
}

}  // namespace lamina

/// The variants of an elementwise op whose vector code defines `template <class T> void kernel(const Launch<Attrs>&)`:
/// every instruction set in f32, bf16 and f16, any strides.
#define LAMINA_ELEMENTWISE_VARIANTS(O, op, kernel)                                                                    \
  LAMINA_ISA_VARIANTS(O, (supports_elementwise<O, DType::f32>), op ".cpu.vector.f32", kernel<float>, false),          \
      LAMINA_ISA_VARIANTS(O, (supports_elementwise<O, DType::bf16>), op ".cpu.vector.bf16", kernel<BFloat16>, false), \
      LAMINA_ISA_VARIANTS(O, (supports_elementwise<O, DType::f16>), op ".cpu.vector.f16", kernel<Half>, false)
