#include "lamina/kernels/cpu/simd/products.hpp"

template <class T>
void matmul_packed(const Launch<Matmul::Attrs>& launch) {
  products_packed(products_of(launch.attrs, launch.in, launch.out), launch.in[0].as<const T>(),
                  launch.in[1].as<const T>(), launch.out[0].as<T>(), launch.executor, launch.pool,
                  [](vf x, std::int64_t) { return x; });
}
template <class T>
void matmul_rows(const Launch<Matmul::Attrs>& launch) {
  products_rows(products_of(launch.attrs, launch.in, launch.out), launch.in[0].as<const T>(),
                launch.in[1].as<const T>(), launch.out[0].as<T>(), launch.executor, launch.pool,
                [](vf x, std::int64_t) { return x; });
}
