#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/tanh/formula.h"

template <class T>
void tanh_lanes(const Launch<Tanh::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return tanh(x); });
}

template <class T>
void tanh_grad_lanes(const Launch<TanhGrad::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf dy, vf y) { return tanh_grad(dy, y); });
}
