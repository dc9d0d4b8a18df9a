// scale: elementwise product with a number.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Scale {
  struct Attrs {
    double factor;
  };
  static constexpr std::string_view name = "scale";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 3};
};

/// factor x, elementwise. Floating dtypes. Gradient: factor dy.
template <TensorLike X>
auto scale(const X& x, double factor, const SourceLocation& at = SourceLocation::current()) {
  return apply<Scale>({factor}, at, x);
}
template <TensorLike X>
auto operator*(const X& x, double factor) {
  return apply<Scale>({factor}, SourceLocation{}, x);
}
template <TensorLike X>
auto operator*(double factor, const X& x) {
  return apply<Scale>({factor}, SourceLocation{}, x);
}
template <TensorLike X>
auto operator/(const X& x, double divisor) {
  return apply<Scale>({1 / divisor}, SourceLocation{}, x);
}

}  // namespace lamina
