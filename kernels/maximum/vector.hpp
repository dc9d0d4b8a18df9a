#include "lamina/kernels/cpu/simd/elementwise.hpp"
#include "lamina/kernels/formula.hpp"
#include "lamina/kernels/maximum/formula.h"

template <class T>
void maximum(const Launch<Maximum::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf a, vf b) { return maximum_of(a, b); });
}

template <class T>
void minimum(const Launch<Minimum::Attrs>& launch) {
  elementwise<T, 2>(launch.in, launch.out[0], launch.executor, [](vf a, vf b) { return minimum_of(a, b); });
}

template <class T>
void maximum_grad(const Launch<MaximumGrad::Attrs>& launch) {
  auto run = [&](auto f) { elementwise<T, 3>(launch.in, launch.out[0], launch.executor, f); };
  if (launch.attrs.minimum) {
    if (launch.attrs.second) {
      run([](vf dy, vf a, vf b) { return minimum_grad_second(dy, a, b); });
    } else {
      run([](vf dy, vf a, vf b) { return minimum_grad_first(dy, a, b); });
    }
  } else {
    if (launch.attrs.second) {
      run([](vf dy, vf a, vf b) { return maximum_grad_second(dy, a, b); });
    } else {
      run([](vf dy, vf a, vf b) { return maximum_grad_first(dy, a, b); });
    }
  }
}
