#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class T>
void mul(const Launch<Mul::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf a, vf b) { return a * b; });
}
