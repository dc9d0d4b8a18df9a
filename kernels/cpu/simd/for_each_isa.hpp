// Compiles one header of vector code for every instruction set, into the namespaces lamina::baseline, avx2, avx512 and
// wide. No include guard: each kernel file includes it once, after all its other includes.
//
//   #define LAMINA_VECTOR_CODE "lamina/kernels/gelu/vector.hpp"
//   #include "lamina/kernels/cpu/simd/for_each_isa.hpp"
//
// The code sees the types of simd.hpp and writes to a lane count, LAMINA_LANES. Everything in it has internal linkage
// and calls nothing of the standard library that is a template: a weak symbol compiled for AVX-512 could be the one
// the linker keeps for everybody.
#include <immintrin.h>

#include "lamina/kernels/variant.hpp"

#if defined(__clang__)
#define LAMINA_PRAGMA(x) _Pragma(#x)
#define LAMINA_TARGET_BEGIN(features) \
  LAMINA_PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define LAMINA_TARGET_END _Pragma("clang attribute pop")
#else
#define LAMINA_PRAGMA(x) _Pragma(#x)
#define LAMINA_TARGET_BEGIN(features) _Pragma("GCC push_options") LAMINA_PRAGMA(GCC target(features))
#define LAMINA_TARGET_END _Pragma("GCC pop_options")
#endif

#define LAMINA_LANES 4
#define LAMINA_REGISTER_LANES 4
namespace lamina::baseline {
namespace {
#include "lamina/kernels/cpu/simd/simd.hpp"
#include LAMINA_VECTOR_CODE
}  // namespace
}  // namespace lamina::baseline
#undef LAMINA_LANES
#undef LAMINA_REGISTER_LANES

#define LAMINA_LANES 8
#define LAMINA_REGISTER_LANES 8
LAMINA_TARGET_BEGIN("avx2,fma,f16c")
namespace lamina::avx2 {
namespace {
#include "lamina/kernels/cpu/simd/simd.hpp"
#include LAMINA_VECTOR_CODE
}  // namespace
}  // namespace lamina::avx2
LAMINA_TARGET_END
#undef LAMINA_LANES
#undef LAMINA_REGISTER_LANES

#define LAMINA_LANES 16
#define LAMINA_REGISTER_LANES 16
LAMINA_TARGET_BEGIN("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl")
namespace lamina::avx512 {
namespace {
#include "lamina/kernels/cpu/simd/simd.hpp"
#include LAMINA_VECTOR_CODE
}  // namespace
}  // namespace lamina::avx512
LAMINA_TARGET_END
#undef LAMINA_REGISTER_LANES

// For tests only: builds without them leave it out.
#ifndef LAMINA_NO_WIDE
#define LAMINA_REGISTER_LANES 8
LAMINA_TARGET_BEGIN("avx2,fma,f16c")
namespace lamina::wide {
namespace {
#include "lamina/kernels/cpu/simd/simd.hpp"
#include LAMINA_VECTOR_CODE
}  // namespace
}  // namespace lamina::wide
LAMINA_TARGET_END
#undef LAMINA_REGISTER_LANES
#endif
#undef LAMINA_LANES

#ifdef LAMINA_NO_WIDE
#define LAMINA_WIDE_VARIANT(O, supports, name, kernel, dense)
#else
#define LAMINA_WIDE_VARIANT(O, supports, name, kernel, dense) \
  , variant<O, supports, wide::kernel>(name ".wide", Isa::wide, dense)
#endif

/// The variants of one kernel: LAMINA_ISA_VARIANTS(Gelu, supports, "gelu.cpu.vector.f32", gelu_f32, true).
/// `kernel` is a function of the vector code; `dense` is Variant::dense. Best first.
#define LAMINA_ISA_VARIANTS(O, supports, name, kernel, dense)                        \
  variant<O, supports, avx512::kernel>(name ".avx512", Isa::avx512, dense),          \
      variant<O, supports, avx2::kernel>(name ".avx2", Isa::avx2, dense),            \
      variant<O, supports, baseline::kernel>(name ".baseline", Isa::baseline, dense) \
          LAMINA_WIDE_VARIANT(O, supports, name, kernel, dense)
