#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class T>
void scale(const Launch<Scale::Attrs>& launch) {
  const float factor = static_cast<float>(launch.attrs.factor);
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [=](vf x) { return x * factor; });
}
