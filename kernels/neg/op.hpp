// neg: elementwise -x.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Neg {
  struct Attrs {};
  static constexpr std::string_view name = "neg";
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

/// -x, elementwise. Floating dtypes. Gradient: -dy.
template <TensorLike X>
auto neg(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Neg>({}, at, x);
}
template <TensorLike X>
auto operator-(const X& x) {
  return apply<Neg>({}, SourceLocation{}, x);
}

}  // namespace lamina
