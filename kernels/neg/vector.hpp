#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class T>
void neg_lanes(const Launch<Neg::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return -x; });
}
