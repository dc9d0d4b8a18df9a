// sum: over any axes. The sum of nothing is 0.
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/reduction.hpp"

namespace lamina {

struct Sum {
  using Attrs = ReduceAttrs;
  static constexpr std::string_view name = "sum";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 1};
};

/// Over all dims, to a scalar. Accumulates in blocks: the relative error does not grow with the count.
template <TensorLike X>
auto sum(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Sum>(all_axes(Applier<X>::value(x).shape()), at, x);
}
/// Over the dims listed; negative counts from the end.
template <TensorLike X>
auto sum(const X& x, std::span<const int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return apply<Sum>(reduce_axes(Sum::name, Applier<X>::value(x).shape(), dims, keep), at, x);
}
template <TensorLike X>
auto sum(const X& x, std::initializer_list<int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return sum(x, std::span<const int>(dims.begin(), dims.size()), keep, at);
}

}  // namespace lamina
