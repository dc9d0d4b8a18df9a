// What pooling loops share: a row of an image with room for lanes of windows. Included by
// vector code after simd.hpp (no include guard); the kernel file has included kernels/pool.hpp and cpu/reduce.hpp.
#include "lamina/kernels/cpu/simd/reduce.hpp"
#include "lamina/kernels/cpu/simd/shuffle.hpp"

LAMINA_INLINE std::int64_t least(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
LAMINA_INLINE std::int64_t most(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

LAMINA_INLINE std::int64_t whole_outputs(const WindowAxis& axis) { return ceil_div(axis.outputs, kLanes) * kLanes; }
/// Floats of a row in which window `o` begins at o * stride, for loads and stores of whole vectors.
LAMINA_INLINE std::int64_t row_floats(const WindowAxis& axis) {
  return most(whole_outputs(axis) * axis.stride, axis.extent) + axis.kernel + axis.padding + 2 * kLanes;
}

/// kLanes floats that are kStep apart (1 or 2; 0: `step`).
template <int kStep>
LAMINA_INLINE vf load_apart(const float* p, std::int64_t step) {
  if constexpr (kStep == 1) return load(p);
  if constexpr (kStep == 2) return even_elements(load(p), load(p + kLanes));
  vf v;
  for (int lane = 0; lane < kLanes; ++lane) v[lane] = p[lane * step];
  return v;
}

/// f.operator()<kStep>() for the step.
template <class F>
LAMINA_INLINE void with_step(std::int64_t step, F f) {
  if (step == 1) {
    f.template operator()<1>();
  } else if (step == 2) {
    f.template operator()<2>();
  } else {
    f.template operator()<0>();
  }
}

LAMINA_INLINE void fill(float* to, std::int64_t count, float value) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = value;
}
