// sgd_step: stochastic gradient descent with momentum (Sutskever et al. 2013) over a whole group of parameters.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

/// Operands: `count` values, `count` gradients and, with momentum, `count` velocities; outputs: values and velocities.
///   g = gradient_scale * gradient + weight_decay * value
///   velocity = momentum * velocity + g
///   value -= rate * (nesterov ? g + momentum * velocity : velocity)
/// May run in place (run_into with in_place): outputs may be the operands they replace. Has no gradient.
struct SgdStep {
  struct Attrs {
    int count = 0;
    double lr = 0;
    double momentum = 0;  ///< 0: no velocities
    double weight_decay = 0;
    bool nesterov = false;
    double gradient_scale = 1;
  };
  static constexpr std::string_view name = "sgd_step";
  static constexpr int outputs = -1;
  static constexpr bool in_place = true;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 4};
};

}  // namespace lamina
