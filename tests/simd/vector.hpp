// The functions of simd.hpp and math.hpp over whole arrays, for the test of their accuracy.
#include "lamina/kernels/cpu/simd/math.hpp"

template <class F>
LAMINA_INLINE void over(const float* x, float* y, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t m = n - i < kLanes ? n - i : kLanes;
    store_first(y + i, f(load_first(x + i, m)), m);
  }
}
void exp_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return exp(v); });
}
void log_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return log(v); });
}
void tanh_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return tanh(v); });
}
void sigmoid_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return sigmoid(v); });
}
void erf_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return erf(v); });
}
void sqrt_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return sqrt(v); });
}
void round_all(const float* x, float* y, std::int64_t n) {
  over(x, y, n, [](vf v) { return round(v); });
}

template <class T>
LAMINA_INLINE void widen(const T* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t m = n - i < kLanes ? n - i : kLanes;
    store_first(y + i, Lanes<T>::load(x + i, m), m);
  }
}
template <class T>
LAMINA_INLINE void narrow(const float* x, T* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t m = n - i < kLanes ? n - i : kLanes;
    Lanes<T>::store(y + i, load_first(x + i, m), m);
  }
}
void from_bf16_all(const BFloat16* x, float* y, std::int64_t n) { widen(x, y, n); }
void from_f16_all(const Half* x, float* y, std::int64_t n) { widen(x, y, n); }
void to_bf16_all(const float* x, BFloat16* y, std::int64_t n) { narrow(x, y, n); }
void to_f16_all(const float* x, Half* y, std::int64_t n) { narrow(x, y, n); }

float sum_lanes_of(const float* x) { return sum_lanes(load(x)); }
float max_lanes_of(const float* x) { return max_lanes(load(x)); }
int lanes() { return kLanes; }

const Functions& functions() {
  static constexpr Functions all{exp_all,    log_all,      tanh_all,      sigmoid_all,  erf_all,
                                 sqrt_all,   round_all,    from_bf16_all, from_f16_all, to_bf16_all,
                                 to_f16_all, sum_lanes_of, max_lanes_of,  lanes};
  return all;
}
