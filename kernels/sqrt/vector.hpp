#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class T>
void sqrt_lanes(const Launch<Sqrt::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return sqrt(x); });
}
