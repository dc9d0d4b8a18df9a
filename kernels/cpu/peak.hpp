// What this machine reaches: the yardsticks of `lamina info` and of the rooflines.
#pragma once

#include "lamina/kernels/variant.hpp"

namespace lamina {

/// f32 FLOP/s of independent fused multiply-adds in registers, best of several rounds of about 20 ms each.
double measure_peak_flops(Isa isa, int threads);

/// Bytes/s of a[i] = b[i] + c[i] over arrays of 64 MiB together, 12 bytes an element counted.
double measure_bandwidth(int threads);

}  // namespace lamina
