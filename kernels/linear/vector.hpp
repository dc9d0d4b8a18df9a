#include "lamina/kernels/cpu/simd/math.hpp"
#include "lamina/kernels/cpu/simd/products.hpp"
#include "lamina/kernels/relu/formula.h"

LAMINA_INLINE vf activate(Activation activation, vf x) {
  switch (activation) {
    case Activation::relu: return relu(x);
    case Activation::tanh: return tanh(x);
    case Activation::sigmoid: return sigmoid(x);
    default: return x;
  }
}

/// What becomes of a sum: bias and activation.
template <class T>
struct LinearEnd {
  const T* bias;  // null: none
  std::int64_t stride;
  std::int64_t n;
  Activation activation;

  LAMINA_INLINE vf operator()(vf x, std::int64_t column) const {
    if (bias != nullptr) {
      if (n == 1) {
        x = x + broadcast(Lanes<T>::get(bias));
      } else if (stride == 1) {
        x = x + load_part(bias + column, n - column);
      } else {
        for (std::int64_t j = 0; j < kLanes && column + j < n; ++j) x[j] += Lanes<T>::get(bias + (column + j) * stride);
      }
    }
    return activate(activation, x);
  }
};

template <class T, bool kRows>
void run_linear(Operands in, Operands out, Activation activation, Executor& executor, MemoryPool& pool) {
  const Products p = products_of(in, out);
  const bool bias = in.size() == 3;
  const LinearEnd<T> end{bias ? in[2].as<const T>() : nullptr, bias ? in[2].stride(0) : 0, p.n, activation};
  const T *x = in[0].as<const T>(), *w = in[1].as<const T>();
  if constexpr (kRows) {
    products_rows(p, x, w, out[0].as<T>(), executor, pool, end);
  } else {
    products_packed(p, x, w, out[0].as<T>(), executor, pool, end);
  }
}

template <class T>
void linear_packed(const Launch<Linear::Attrs>& l) {
  run_linear<T, false>(l.in, l.out, Activation::none, l.executor, l.pool);
}
template <class T>
void linear_rows(const Launch<Linear::Attrs>& l) {
  run_linear<T, true>(l.in, l.out, Activation::none, l.executor, l.pool);
}
template <class T>
void linear_activated_packed(const Launch<LinearActivated::Attrs>& l) {
  run_linear<T, false>(l.in, l.out, l.attrs.activation, l.executor, l.pool);
}
template <class T>
void linear_activated_rows(const Launch<LinearActivated::Attrs>& l) {
  run_linear<T, true>(l.in, l.out, l.attrs.activation, l.executor, l.pool);
}
