#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"

template <class T>
void log_lanes(const Launch<Log::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return log(x); });
}
