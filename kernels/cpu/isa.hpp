// Which instruction sets this machine can run: the CPU's feature bits and the register state the OS has enabled.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/kernels/variant.hpp"

namespace lamina {

/// What CPUID and XGETBV say. A value, so that the rule below can be tested on any combination.
struct CpuFeatures {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint64_t xcr0 = 0;  ///< 0 when the OS does not enable XGETBV
  static CpuFeatures read() noexcept;
};

/// True when code compiled for `isa` may run. Each set names exactly the features its code is compiled with.
bool can_run(Isa isa, const CpuFeatures& features) noexcept;

/// The instruction sets of `features`, best first; baseline is always among them, wide never.
std::vector<Isa> usable_isas(const CpuFeatures& features);

/// The best set that the environment's LAMINA_ISA allows; avx512 when it is not set. Throws ValueError for a name that
/// is not known. Thread-safe but for setenv.
Isa isa_limit();

}  // namespace lamina
