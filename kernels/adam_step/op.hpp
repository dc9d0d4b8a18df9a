// adam_step: Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019) over a whole group of parameters.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

/// Operands: `count` values, gradients, means and squares; outputs: values, means and squares.
///   g = gradient_scale * gradient (+ weight_decay * value unless decoupled)
///   mean = beta1 mean + (1 - beta1) g;  square = beta2 square + (1 - beta2) g^2
///   value = value * (1 - lr weight_decay if decoupled) - lr * (mean / (1 - beta1^step)) /
///           (sqrt(square / (1 - beta2^step)) + epsilon)
/// May run in place, as sgd_step. Has no gradient.
struct AdamStep {
  struct Attrs {
    int count = 0;
    double lr = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
    bool decoupled = false;
    std::int64_t step = 1;  ///< this update's number, from 1
    double gradient_scale = 1;
  };
  static constexpr std::string_view name = "adam_step";
  static constexpr int outputs = -1;
  static constexpr bool in_place = true;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 8};
};

}  // namespace lamina
