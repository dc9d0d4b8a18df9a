#include "lamina/kernels/cpu/simd/elementwise.hpp"

template <class T>
void offset(const Launch<Offset::Attrs>& launch) {
  const float value = static_cast<float>(launch.attrs.value);
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [=](vf x) { return x + value; });
}
