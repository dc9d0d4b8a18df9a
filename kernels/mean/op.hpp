// mean: over any axes. The mean of nothing is an error.
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/reduction.hpp"

namespace lamina {

struct Mean {
  using Attrs = ReduceAttrs;
  static constexpr std::string_view name = "mean";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 2};
};

/// The gradient of mean: a cotangent whose reduced dims have extent 1, repeated to `shape` and divided by the number
/// of repeats.
struct MeanGrad {
  struct Attrs {
    Shape shape;
  };
  static constexpr std::string_view name = "mean_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 4};
};

/// Over all dims, to a scalar. Accumulates in blocks: the relative error does not grow with the count.
/// Gradient: the cotangent, repeated, over the count. Throws ShapeError when a reduced dim has extent 0.
template <TensorLike X>
auto mean(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Mean>(all_axes(Applier<X>::value(x).shape()), at, x);
}
/// Over the dims listed; negative counts from the end.
template <TensorLike X>
auto mean(const X& x, std::span<const int> dims, bool keep = false,
          const SourceLocation& at = SourceLocation::current()) {
  return apply<Mean>(reduce_axes(Mean::name, Applier<X>::value(x).shape(), dims, keep), at, x);
}
template <TensorLike X>
auto mean(const X& x, std::initializer_list<int> dims, bool keep = false,
          const SourceLocation& at = SourceLocation::current()) {
  return mean(x, std::span<const int>(dims.begin(), dims.size()), keep, at);
}

}  // namespace lamina
