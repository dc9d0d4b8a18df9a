// conv2d: 2-D cross-correlation with stride, zero padding, dilation and groups, and its two gradients. Dumoulin &
// Visin, "A guide to convolution arithmetic for deep learning" (arXiv 1603.07285), gives the shapes.
#pragma once

#include <array>

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Conv2dAttrs {
  std::array<std::int64_t, 2> stride{1, 1};    ///< rows, columns
  std::array<std::int64_t, 2> padding{0, 0};   ///< zeros on both sides
  std::array<std::int64_t, 2> dilation{1, 1};  ///< distance of the kernel's taps
  std::int64_t groups = 1;                     ///< blocks of channels that see each other; C: depthwise
};

/// x (N,C,H,W), weight (O,C/groups,KH,KW)[, bias (O)] -> (N,O,OH,OW).
struct Conv2d {
  using Attrs = Conv2dAttrs;
  static constexpr std::string_view name = "conv2d";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 3};
};

/// (cotangent (N,O,OH,OW), weight) -> the gradient of x; as an op of its own, a transposed convolution.
struct Conv2dInputGrad {
  struct Attrs {
    Conv2dAttrs conv;
    std::array<std::int64_t, 2> size{0, 0};  ///< H, W
  };
  static constexpr std::string_view name = "conv2d_input_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 3};
};

/// (cotangent (N,O,OH,OW), x) -> the gradient of weight.
struct Conv2dWeightGrad {
  struct Attrs {
    Conv2dAttrs conv;
    std::array<std::int64_t, 2> size{1, 1};  ///< KH, KW
  };
  static constexpr std::string_view name = "conv2d_weight_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 3};
};

/// y[n,o,i,j] = sum over c, a, b of weight[o,c,a,b] x[n, c of o's group, i stride - padding + a dilation, j ...], zero
/// outside x; OH = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1, rounded down. Floating dtypes, equal.
/// Gradients: conv2d_input_grad (reads weight), conv2d_weight_grad (reads x), and for bias the sum over N, OH, OW.
/// Throws ShapeError for shapes that do not fit, ValueError for attributes out of range, DTypeError.
template <TensorLike X, TensorLike W>
auto conv2d(const X& x, const W& weight, const Conv2dAttrs& attrs = {},
            const SourceLocation& at = SourceLocation::current()) {
  return apply<Conv2d>(attrs, at, x, weight);
}
template <TensorLike X, TensorLike W, TensorLike B>
auto conv2d(const X& x, const W& weight, const B& bias, const Conv2dAttrs& attrs = {},
            const SourceLocation& at = SourceLocation::current()) {
  return apply<Conv2d>(attrs, at, x, weight, bias);
}

}  // namespace lamina
