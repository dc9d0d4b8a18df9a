// log: elementwise natural logarithm.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Log {
  struct Attrs {};
  static constexpr std::string_view name = "log";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// ln x, elementwise; -infinity at 0, NaN below. Floating dtypes. Gradient: dy / x.
template <TensorLike X>
auto log(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Log>({}, at, x);
}

}  // namespace lamina
