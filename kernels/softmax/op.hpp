// softmax and log_softmax along one dim. A row whose elements are all -inf (everything masked) gives 0, not NaN.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct SoftmaxAttrs {
  int dim = 0;  ///< 0 <= dim < rank
};

struct Softmax {
  using Attrs = SoftmaxAttrs;
  static constexpr std::string_view name = "softmax";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 12};
};

/// (cotangent, softmax) -> softmax * (cotangent - sum(cotangent * softmax)).
struct SoftmaxGrad {
  using Attrs = SoftmaxAttrs;
  static constexpr std::string_view name = "softmax_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 12};
};

struct LogSoftmax {
  using Attrs = SoftmaxAttrs;
  static constexpr std::string_view name = "log_softmax";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// (cotangent, log_softmax) -> cotangent - exp(log_softmax) * sum(cotangent).
struct LogSoftmaxGrad {
  using Attrs = SoftmaxAttrs;
  static constexpr std::string_view name = "log_softmax_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.scale = Tolerance::Scale::tensor, .ulps = 15};
};

/// exp(x - max) / sum(exp(x - max)) along `dim` (negative counts from the end): same shape, floating dtypes.
/// A row of -inf gives 0 and gradient 0. Throws ShapeError for a dim outside the rank.
/// bf16 and f16 are computed in f32.
template <TensorLike X>
auto softmax(const X& x, int dim = -1, const SourceLocation& at = SourceLocation::current()) {
  const int rank = Applier<X>::value(x).shape().rank();
  return apply<Softmax>({normalize_dim(Softmax::name, dim, rank)}, at, x);
}

/// x - max - log(sum(exp(x - max))) along `dim`. A row of -inf stays -inf. Else as softmax.
template <TensorLike X>
auto log_softmax(const X& x, int dim = -1, const SourceLocation& at = SourceLocation::current()) {
  const int rank = Applier<X>::value(x).shape().rank();
  return apply<LogSoftmax>({normalize_dim(LogSoftmax::name, dim, rank)}, at, x);
}

}  // namespace lamina
