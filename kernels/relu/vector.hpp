#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/formula.hpp"
#include "lamina/kernels/relu/formula.h"

template <class T>
void relu_lanes(const Launch<Relu::Attrs>& launch) {
  elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return relu(x); });
}

template <class T>
void relu_grad_lanes(const Launch<ReluGrad::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf dy, vf y) { return relu_grad(dy, y); });
}
