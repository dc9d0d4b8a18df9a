// offset: elementwise sum with a number.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Offset {
  struct Attrs {
    double value;
  };
  static constexpr std::string_view name = "offset";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 2};
};

/// x + value, elementwise. Floating dtypes. Gradient: dy.
template <TensorLike X>
auto offset(const X& x, double value, const SourceLocation& at = SourceLocation::current()) {
  return apply<Offset>({value}, at, x);
}
template <TensorLike X>
auto operator+(const X& x, double value) {
  return apply<Offset>({value}, SourceLocation{}, x);
}
template <TensorLike X>
auto operator+(double value, const X& x) {
  return apply<Offset>({value}, SourceLocation{}, x);
}
template <TensorLike X>
auto operator-(const X& x, double value) {
  return apply<Offset>({-value}, SourceLocation{}, x);
}

}  // namespace lamina
