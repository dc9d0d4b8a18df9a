// div: elementwise quotient with broadcasting.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Div {
  struct Attrs {};
  static constexpr std::string_view name = "div";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({1}) | keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 1};
};

/// a / b, broadcast as numpy does; division by 0 gives what IEEE 754 says. Floating dtypes, equal. Gradients, with
/// y = a / b: dy / b and -(dy / b) y, summed to each operand's shape.
template <TensorLike A, TensorLike B>
auto div(const A& a, const B& b, const SourceLocation& at = SourceLocation::current()) {
  return apply<Div>({}, at, a, b);
}
template <TensorLike A, TensorLike B>
auto operator/(const A& a, const B& b) {
  return apply<Div>({}, SourceLocation{}, a, b);
}

}  // namespace lamina
