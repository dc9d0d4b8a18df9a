// gelu: the Gaussian error linear unit (Hendrycks & Gimpel 2016), in the exact and the tanh form.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Gelu {
  struct Attrs {
    bool tanh_form = true;  ///< 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); else 0.5 x (1 + erf(x / sqrt 2))
  };
  static constexpr std::string_view name = "gelu";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 48};
};

/// The gradient of gelu: (cotangent, x) -> cotangent * gelu'(x).
struct GeluGrad {
  using Attrs = Gelu::Attrs;
  static constexpr std::string_view name = "gelu_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 48};
};

/// Elementwise, any shape, floating dtypes.
template <TensorLike X>
auto gelu(const X& x, Gelu::Attrs attrs = {}, const SourceLocation& at = SourceLocation::current()) {
  return apply<Gelu>(attrs, at, x);
}

}  // namespace lamina
