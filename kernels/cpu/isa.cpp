#include "lamina/kernels/cpu/isa.hpp"

#include <cstdlib>

#include "lamina/core/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace lamina {

std::string_view name_of(Isa isa) noexcept {
  constexpr std::string_view names[] = {"baseline", "avx2", "avx512", "wide"};
  return names[static_cast<int>(isa)];
}

CpuFeatures CpuFeatures::read() noexcept {
  CpuFeatures f;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) != 0) f.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) f.leaf7_ebx = b;
  if ((f.leaf1_ecx >> 27 & 1u) != 0) {  // OSXSAVE
    unsigned lo = 0, hi = 0;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    f.xcr0 = (std::uint64_t{hi} << 32) | lo;
  }
#endif
  return f;
}

bool can_run(Isa isa, const CpuFeatures& f) noexcept {
  auto has1 = [&](int bit) { return (f.leaf1_ecx >> bit & 1u) != 0; };
  auto has7 = [&](int bit) { return (f.leaf7_ebx >> bit & 1u) != 0; };
  const bool ymm = has1(27) && (f.xcr0 & 0x6u) == 0x6u;                  // OSXSAVE; XMM and YMM state
  const bool zmm = ymm && (f.xcr0 & 0xE6u) == 0xE6u;                     // and opmask, upper ZMM, ZMM16-31
  const bool avx2 = ymm && has1(28) && has1(12) && has1(29) && has7(5);  // AVX, FMA, F16C, AVX2
  switch (isa) {
    case Isa::baseline: return true;
    case Isa::wide:
    case Isa::avx2: return avx2;
    case Isa::avx512: return avx2 && zmm && has7(16) && has7(17) && has7(30) && has7(31);  // F, DQ, BW, VL
  }
  return false;
}

std::vector<Isa> usable_isas(const CpuFeatures& features) {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::avx512, Isa::avx2, Isa::baseline}) {
    if (can_run(isa, features)) isas.push_back(isa);
  }
  return isas;
}

Isa isa_limit() {
  const char* name = std::getenv("LAMINA_ISA");
  if (name == nullptr || *name == '\0') return Isa::avx512;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (name_of(isa) == name) return isa;
  }
  fail<ValueError>("LAMINA_ISA", "instruction set '{}' is unknown; known: baseline, avx2, avx512", name);
}

}  // namespace lamina
