// add: elementwise sum with broadcasting.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Add {
  struct Attrs {};
  static constexpr std::string_view name = "add";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 1};
};

/// a + b, broadcast as numpy does. Floating dtypes, equal. Gradients: the cotangent, summed to each operand's shape.
template <TensorLike A, TensorLike B>
auto add(const A& a, const B& b, const SourceLocation& at = SourceLocation::current()) {
  return apply<Add>({}, at, a, b);
}
template <TensorLike A, TensorLike B>
auto operator+(const A& a, const B& b) {
  return apply<Add>({}, SourceLocation{}, a, b);
}

}  // namespace lamina
