// batch_norm: every channel to mean 0 and variance 1 over the batch and space, scaled and shifted (Ioffe & Szegedy
// 2015). The op keeps no running state: it returns the batch's statistics, nn tracks them.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct BatchNormAttrs {
  double epsilon = 1e-5;
};

/// Training form: (x (N,C,...), gamma (C), beta (C)) -> (y as x, mean (C), biased variance (C)). The
/// statistics are f32 where x is bf16 or f16, here and below.
struct BatchNorm {
  using Attrs = BatchNormAttrs;
  static constexpr std::string_view name = "batch_norm";
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

/// (cotangent of y, x, gamma, mean, variance[, cotangents of mean and variance]) -> (dx, dgamma, dbeta), through the
/// statistics.
struct BatchNormGrad {
  using Attrs = BatchNormAttrs;
  static constexpr std::string_view name = "batch_norm_grad";
  static constexpr int outputs = 3;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 24};
};

/// (x (N,C,...), gamma, beta, mean, variance, all (C)) -> y as x. The running statistics are f32 for bf16 and f16.
struct BatchNormInference {
  using Attrs = BatchNormAttrs;
  static constexpr std::string_view name = "batch_norm_inference";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Keep kKeep = keep_inputs({0, 1, 3, 4});
  static constexpr Saves saves{.for_operand = {kKeep, kKeep, kKeep, kKeep, kKeep}, .unsplit = true};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 12};
};

/// (cotangent, x, gamma, mean, variance) -> (dx, dgamma, dbeta, dmean, dvariance).
struct BatchNormInferenceGrad {
  using Attrs = BatchNormAttrs;
  static constexpr std::string_view name = "batch_norm_inference_grad";
  static constexpr int outputs = 5;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 32};
};

/// (x - mean) / sqrt(variance + epsilon) * gamma + beta with the statistics of the batch, per channel of x (N,C,...).
/// Returns three values: y, mean (C) and the biased variance (C). Gradients for x, gamma and beta, through
/// the statistics too. Throws ShapeError for rank < 2, for gamma or beta other than (C), and for exactly one value a
/// channel; ValueError unless epsilon > 0. Of an empty batch the statistics are 0. bf16 and f16 are computed
/// in f32, which the statistics are given in.
template <TensorLike X, TensorLike G, TensorLike B>
auto batch_norm(const X& x, const G& gamma, const B& beta, BatchNormAttrs attrs = {},
                const SourceLocation& at = SourceLocation::current()) {
  return apply<BatchNorm>(attrs, at, x, gamma, beta);
}

/// The same with given statistics. Gradients for all operands.
template <TensorLike X, TensorLike G, TensorLike B, TensorLike M, TensorLike V>
auto batch_norm_inference(const X& x, const G& gamma, const B& beta, const M& mean, const V& variance,
                          BatchNormAttrs attrs = {}, const SourceLocation& at = SourceLocation::current()) {
  return apply<BatchNormInference>(attrs, at, x, gamma, beta, mean, variance);
}

}  // namespace lamina
