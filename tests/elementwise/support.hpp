// Devices of every instruction set, and values and gradients of a function of one f32 tensor.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <vector>

#include "lamina/autograd/tape.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cpu/isa.hpp"

namespace lamina {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Calls f(device) for each instruction set that this machine runs.
template <class F>
void on_every_isa(F f) {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (!can_run(isa, CpuFeatures::read())) continue;
    SCOPED_TRACE(name_of(isa));
    f(cpu_device({.threads = 1, .max_isa = isa}));
  }
}

inline Tensor vector_of(const Device& device, const std::vector<float>& values) {
  return Tensor::from(device, {static_cast<std::int64_t>(values.size())}, values);
}

struct Differentiated {
  std::vector<float> value, gradient;
};

/// f(x) and the gradient of x for the cotangent dy, all ones if none is given.
inline Differentiated differentiate(const Device& device, const std::vector<float>& x,
                                    const std::function<Var(const Var&)>& f, std::vector<float> dy = {}) {
  Tape tape;
  const Var in = tape.input(vector_of(device, x));
  const Var out = f(in);
  if (dy.empty()) dy.assign(static_cast<std::size_t>(out.value().count()), 1.0f);
  Pass pass = tape.pass();
  pass.seed(out, Tensor::from(device, out.shape(), dy));
  pass.run({in});
  const auto gradient = pass.take(in);
  EXPECT_TRUE(gradient.has_value());
  return {to_vector<float>(contiguous(out.value())),
          gradient ? to_vector<float>(contiguous(*gradient)) : std::vector<float>{}};
}

}  // namespace lamina
