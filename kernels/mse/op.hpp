// mse: the mean squared error of two tensors.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Mse {
  struct Attrs {};
  static constexpr std::string_view name = "mse";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0, 1}), keep_inputs({0, 1})}, .unsplit = true};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// The gradient of mse to its first operand: (dy, x, y) -> dy (2 / n) (x - y) with a scalar dy.
struct MseGrad {
  using Attrs = Mse::Attrs;
  static constexpr std::string_view name = "mse_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// Two tensors of one shape -> the scalar mean of (x - y)^2. Floating dtypes, equal. Nothing broadcasts: throws
/// ShapeError with both shapes when they differ, and when there is nothing to take the mean of. Accumulates in blocks:
/// the relative error does not grow with the count. Gradients: dy (2 / n) (x - y) and its negative.
template <TensorLike X, TensorLike Y>
auto mse(const X& x, const Y& y, const SourceLocation& at = SourceLocation::current()) {
  return apply<Mse>({}, at, x, y);
}

}  // namespace lamina
