#include "lamina/kernels/cpu/simd/reduce.hpp"

template <class T>
void sum(const Launch<Sum::Attrs>& launch) {
  reduce<Summing, T>(launch.in[0], launch.attrs.axes, launch.out[0], launch.executor, launch.pool,
                     [](double total) { return static_cast<float>(total); });
}
