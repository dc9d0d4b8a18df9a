// relu: elementwise max(x, 0).
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Relu {
  struct Attrs {};
  static constexpr std::string_view name = "relu";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// The gradient of relu: (dy, y) -> y <= 0 ? 0 : dy.
struct ReluGrad {
  using Attrs = Relu::Attrs;
  static constexpr std::string_view name = "relu_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// x < 0 ? 0 : x, elementwise; NaN stays NaN. Floating dtypes. Gradient: dy where y > 0 (or NaN), else 0.
template <TensorLike X>
auto relu(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Relu>({}, at, x);
}

}  // namespace lamina
