// tanh: elementwise hyperbolic tangent.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Tanh {
  struct Attrs {};
  static constexpr std::string_view name = "tanh";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 6};
};

/// The gradient of tanh: (dy, y) -> dy (1 - y^2).
struct TanhGrad {
  using Attrs = Tanh::Attrs;
  static constexpr std::string_view name = "tanh_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// tanh x, elementwise. Floating dtypes. Gradient: dy (1 - y^2).
template <TensorLike X>
auto tanh(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Tanh>({}, at, x);
}

}  // namespace lamina
