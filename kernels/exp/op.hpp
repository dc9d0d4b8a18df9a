// exp: elementwise e^x.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Exp {
  struct Attrs {};
  static constexpr std::string_view name = "exp";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// e^x, elementwise. Floating dtypes. Gradient: dy y.
template <TensorLike X>
auto exp(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Exp>({}, at, x);
}

}  // namespace lamina
