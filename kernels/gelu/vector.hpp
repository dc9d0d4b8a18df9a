#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/gelu/formula.h"

template <class T>
void gelu(const Launch<Gelu::Attrs>& launch) {
  if (launch.attrs.tanh_form) {
    elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return gelu_tanh_form(x); });
  } else {
    elementwise<T, 1>(launch.in, launch.out[0], launch.executor, [](vf x) { return gelu_erf_form(x); });
  }
}

template <class T>
void gelu_grad(const Launch<GeluGrad::Attrs>& launch) {
  if (launch.attrs.tanh_form) {
    elementwise<T, 2>(launch.in, launch.out[0], launch.executor,
                      [](vf dy, vf x) { return gelu_tanh_form_grad(dy, x); });
  } else {
    elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf dy, vf x) { return gelu_erf_form_grad(dy, x); });
  }
}
