// The CPU's kernels: each op folder's cpu.cpp defines cpu_variants<Op>(); a forgotten one is a link error.
#pragma once

#include <span>

#include "lamina/kernels/table.hpp"

namespace lamina {

/// The op's own CPU variants, best first; empty when the reference is all there is.
template <class O>
std::span<const Variant> cpu_variants();

/// Every op's variants and, last, its reference. Usable are those that this machine and `max_isa` allow.
KernelTable cpu_kernel_table(Isa max_isa);

}  // namespace lamina
