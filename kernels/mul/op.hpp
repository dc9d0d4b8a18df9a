// mul: elementwise product with broadcasting.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Mul {
  struct Attrs {};
  static constexpr std::string_view name = "mul";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 1};
};

/// a b, broadcast as numpy does. Floating dtypes, equal. Gradients: dy b and dy a, summed to each operand's shape.
template <TensorLike A, TensorLike B>
auto mul(const A& a, const B& b, const SourceLocation& at = SourceLocation::current()) {
  return apply<Mul>({}, at, a, b);
}
template <TensorLike A, TensorLike B>
auto operator*(const A& a, const B& b) {
  return apply<Mul>({}, SourceLocation{}, a, b);
}

}  // namespace lamina
