// attention: softmax(scale q k^T) v for every head, fused (Dao et al. 2022, "FlashAttention": softmax by blocks of keys
// with a running maximum, probabilities recomputed in backward from the logarithm of their sum).
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Attention {
  struct Attrs {
    bool causal = false;  ///< query i sees keys 0..i; needs as many keys as queries
    double scale = 0;     ///< of the scores; 0: 1 / sqrt(D)
  };
  static constexpr std::string_view name = "attention";
  static constexpr int outputs = 2;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Keep kKeep = keep_inputs({0, 1, 2}) | keep_outputs({0, 1});
  static constexpr Saves saves{.for_operand = {kKeep, kKeep, kKeep}, .unsplit = true};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// (dy, q, k, v, y, logsumexp[, dlogsumexp]) -> (dq, dk, dv). The last is the cotangent of logsumexp, if it has one.
struct AttentionGrad {
  using Attrs = Attention::Attrs;
  static constexpr std::string_view name = "attention_grad";
  static constexpr int outputs = 3;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 16};
};

/// q (B,H,T,D), k and v (B,H,S,D) -> y (B,H,T,D) and logsumexp (B,H,T), the logarithm of the sum of exp(score) of a
/// query, f32 (f64 for f64). A query that sees no key, or only scores of -inf, gives y = 0, the lowest finite f32 as
/// logsumexp, and gradients of 0. The bits of a query's result do not depend on the other queries; those of the
/// gradients not on the number of threads. Operands may be views. Throws ShapeError, DTypeError (floating, equal),
/// ValueError for a scale that is not finite.
template <TensorLike Q, TensorLike K, TensorLike V>
auto attention_with_logsumexp(const Q& q, const K& k, const V& v, Attention::Attrs attrs = {},
                              const SourceLocation& at = SourceLocation::current()) {
  return apply<Attention>(attrs, at, q, k, v);
}
/// y alone.
template <TensorLike Q, TensorLike K, TensorLike V>
auto attention(const Q& q, const K& k, const V& v, Attention::Attrs attrs = {},
               const SourceLocation& at = SourceLocation::current()) {
  auto out = apply<Attention>(attrs, at, q, k, v);
  return ValueOf<Q, K, V>(std::move(out[0]));
}

/// attrs.scale, or what 0 stands for.
double attention_scale(const Attention::Attrs& attrs, std::int64_t features);

}  // namespace lamina
