#include <cmath>

#include "lamina/kernels/adam_step/op.hpp"
#include "lamina/kernels/cpu/elementwise.hpp"

namespace lamina {

namespace {

struct AdamFactors {
  float scale, decay, beta1, rest1, beta2, rest2, inverse_correction2, epsilon, keep, rate;
};

AdamFactors adam_factors(const AdamStep::Attrs& a) {
  const double correction1 = 1 - std::pow(a.beta1, static_cast<double>(a.step));
  const double correction2 = 1 - std::pow(a.beta2, static_cast<double>(a.step));
  return {static_cast<float>(a.gradient_scale),
          static_cast<float>(a.decoupled ? 0 : a.weight_decay),
          static_cast<float>(a.beta1),
          static_cast<float>(1 - a.beta1),
          static_cast<float>(a.beta2),
          static_cast<float>(1 - a.beta2),
          static_cast<float>(1 / correction2),
          static_cast<float>(a.epsilon),
          static_cast<float>(a.decoupled ? 1 - a.lr * a.weight_decay : 1),
          static_cast<float>(a.lr / correction1)};
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/adam_step/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<AdamStep>() {
  static constexpr Variant table[] = {LAMINA_ISA_VARIANTS(AdamStep, (supports_elementwise<AdamStep, DType::f32>),
                                                          "adam_step.cpu.vector.f32", adam_step, true)};
  return table;
}

}  // namespace lamina
