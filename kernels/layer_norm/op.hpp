// layer_norm: every row along the last dim to mean 0 and variance 1, scaled and shifted (Ba, Kiros & Hinton 2016).
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct LayerNormAttrs {
  double epsilon = 1e-5;
};

/// (x (..., D), gamma (D), beta (D)) -> (y as x, mean (...), rstd (...)): the mean and 1 / sqrt(variance + epsilon) of
/// each row, for the gradient, in f32 where x is bf16 or f16.
struct LayerNorm {
  using Attrs = LayerNormAttrs;
  static constexpr std::string_view name = "layer_norm";
  static constexpr int outputs = 3;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Keep kKeep = keep_inputs({0, 1}) | keep_outputs({1, 2});
  static constexpr Saves saves{.for_operand = {kKeep, kKeep, kKeep}, .unsplit = true};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 16};
};

/// (cotangent of y, x, gamma, mean, rstd) -> (dx, dgamma, dbeta); the statistics as LayerNorm gives them.
struct LayerNormGrad {
  struct Attrs {};
  static constexpr std::string_view name = "layer_norm_grad";
  static constexpr int outputs = 3;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 16};
};

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta over the last dim of x, of rank 1 to 8 and any number of rows,
/// 0 too (then dgamma and dbeta are 0). The variance is the biased one. Gradients for x, gamma and beta.
/// Throws ShapeError unless D >= 1 and gamma and beta are (D); ValueError unless epsilon > 0.
/// bf16 and f16 are computed in f32.
template <TensorLike X, TensorLike G, TensorLike B>
auto layer_norm(const X& x, const G& gamma, const B& beta, LayerNormAttrs attrs = {},
                const SourceLocation& at = SourceLocation::current()) {
  auto out = apply<LayerNorm>(attrs, at, x, gamma, beta);
  return ValueOf<X, G, B>(std::move(out[0]));
}

}  // namespace lamina
