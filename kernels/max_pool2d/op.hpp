// max_pool2d: the largest element of each window.
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/pool.hpp"

namespace lamina {

/// x (N,C,H,W) -> y (N,C,OH,OW) and the place of each in its plane, h * W + w, i64. The first of equals wins, NaN wins
/// over numbers, padding never wins.
struct MaxPool2d {
  using Attrs = Window2d;
  static constexpr std::string_view name = "max_pool2d";
  static constexpr int outputs = 2;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({1})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// (cotangent (N,C,OH,OW), places) -> (N,C,H,W): each cotangent added at its place, in row-major order.
struct MaxPool2dGrad {
  struct Attrs {
    std::array<std::int64_t, 2> size{1, 1};  ///< H, W
  };
  static constexpr std::string_view name = "max_pool2d_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// The largest element of each window; see Window2d. The gradient goes to the element that won.
template <TensorLike X>
auto max_pool2d(const X& x, const Window2d& window, const SourceLocation& at = SourceLocation::current()) {
  auto out = apply<MaxPool2d>(window, at, x);
  return X(std::move(out[0]));
}

}  // namespace lamina
