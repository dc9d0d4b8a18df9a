// Gradient checking: backward against central differences, in float64.
#pragma once

#include <functional>
#include <string>

#include "lamina/autograd/tape.hpp"

namespace lamina {

struct GradientCheck {
  double worst = 0;   ///< largest |analytic - numeric| / (1 + |numeric|)
  std::string where;  ///< "input 1, element 7: analytic 0.25, numeric 0.5"
};

/// Compares d fn / d inputs with central differences of step `step`. `fn` returns a var of one element and is run
/// 2 * elements + 1 times; inputs are f64 (else DTypeError). With `directions` > 0 that many random directions are
/// compared instead of every element: for functions with many inputs.
GradientCheck check_gradients(const std::function<Var(Tape&, std::span<const Var>)>& fn, std::vector<Tensor> inputs,
                              double step = 1e-6, int directions = 0, std::uint64_t seed = 0);

/// The same for parameters: `fn` reads them through the tape. They are changed and put back.
GradientCheck check_gradients(const std::function<Var(Tape&)>& fn, std::span<Param* const> params, double step = 1e-6,
                              int directions = 4, std::uint64_t seed = 0);

}  // namespace lamina
