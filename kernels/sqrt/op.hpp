// sqrt: elementwise square root.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Sqrt {
  struct Attrs {};
  static constexpr std::string_view name = "sqrt";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 2};
};

/// The square root, elementwise; NaN below 0. Floating dtypes. Gradient: dy / (2 y), infinite at 0.
template <TensorLike X>
auto sqrt(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Sqrt>({}, at, x);
}

}  // namespace lamina
