// linear: a dense layer, y = activation(x W^T + b), in one pass over y.
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/gelu/op.hpp"

namespace lamina {

/// What is applied to a layer's sums. gelu needs the sums for its gradient and so is not fused.
enum class Activation : std::uint8_t { none, relu, tanh, sigmoid, gelu };

/// x (..., in), weight (out, in), bias (out) or none -> (..., out).
struct Linear {
  struct Attrs {};
  static constexpr std::string_view name = "linear";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// Linear, then an activation whose gradient follows from its result: relu, tanh or sigmoid.
struct LinearActivated {
  struct Attrs {
    Activation activation = Activation::relu;
  };
  static constexpr std::string_view name = "linear_activated";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{
      .for_operand = {keep_inputs({1}) | keep_outputs({0}), keep_inputs({0}) | keep_outputs({0}), keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// y = activation(x W^T + b): x (..., in), weight (out, in), bias (out) -> (..., out). Accumulated in f32 for f32, f16
/// and bf16. Operands may be views. Gradients: g = dy activation'; dx = g W, dW = g^T x and db = g summed over all
/// leading dims (zero when there are no rows). gelu is the tanh form and a second op. Throws ShapeError, DTypeError
/// (floating, equal).
template <TensorLike X, TensorLike W, TensorLike B>
auto linear(const X& x, const W& weight, const B& bias, Activation activation = Activation::none,
            const SourceLocation& at = SourceLocation::current()) {
  if (activation == Activation::none) return apply<Linear>({}, at, x, weight, bias);
  if (activation == Activation::gelu) return gelu(apply<Linear>({}, at, x, weight, bias), {}, at);
  return apply<LinearActivated>({activation}, at, x, weight, bias);
}
/// Without a bias.
template <TensorLike X, TensorLike W>
auto linear(const X& x, const W& weight, Activation activation = Activation::none,
            const SourceLocation& at = SourceLocation::current()) {
  if (activation == Activation::none) return apply<Linear>({}, at, x, weight);
  if (activation == Activation::gelu) return gelu(apply<Linear>({}, at, x, weight), {}, at);
  return apply<LinearActivated>({activation}, at, x, weight);
}

}  // namespace lamina
