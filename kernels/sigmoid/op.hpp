// sigmoid: elementwise 1 / (1 + e^-x).
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Sigmoid {
  struct Attrs {};
  static constexpr std::string_view name = "sigmoid";
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

/// The gradient of sigmoid: (dy, y) -> dy y (1 - y).
struct SigmoidGrad {
  using Attrs = Sigmoid::Attrs;
  static constexpr std::string_view name = "sigmoid_grad";
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

/// 1 / (1 + e^-x), elementwise. Floating dtypes. Gradient: dy y (1 - y).
template <TensorLike X>
auto sigmoid(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Sigmoid>({}, at, x);
}

}  // namespace lamina
