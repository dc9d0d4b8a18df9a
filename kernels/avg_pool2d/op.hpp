// avg_pool2d: the mean of each window. Pooling over the whole image is mean(x, {2, 3}).
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/pool.hpp"

namespace lamina {

struct AvgPool2dAttrs {
  Window2d window;
  bool count_padding = false;  ///< divide by the whole window, not by its part inside the image
};

struct AvgPool2d {
  using Attrs = AvgPool2dAttrs;
  static constexpr std::string_view name = "avg_pool2d";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// cotangent (N,C,OH,OW) -> (N,C,H,W).
struct AvgPool2dGrad {
  struct Attrs {
    AvgPool2dAttrs pool;
    std::array<std::int64_t, 2> size{1, 1};  ///< H, W
  };
  static constexpr std::string_view name = "avg_pool2d_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// (N,C,H,W) -> (N,C,OH,OW); see Window2d.
template <TensorLike X>
auto avg_pool2d(const X& x, const AvgPool2dAttrs& attrs, const SourceLocation& at = SourceLocation::current()) {
  return apply<AvgPool2d>(attrs, at, x);
}

}  // namespace lamina
