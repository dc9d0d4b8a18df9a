#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/sigmoid/formula.h"

template <class T>
void sigmoid_lanes(const Launch<Sigmoid::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return sigmoid(x); });
}

template <class T>
void sigmoid_grad_lanes(const Launch<SigmoidGrad::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf dy, vf y) { return sigmoid_grad(dy, y); });
}
