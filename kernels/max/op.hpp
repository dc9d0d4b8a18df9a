// max and min: the largest and smallest element over any axes. NaN if there is one. Of nothing: an error.
#pragma once

#include "lamina/kernels/apply.hpp"
#include "lamina/kernels/reduction.hpp"

namespace lamina {

struct Max {
  using Attrs = ReduceAttrs;
  static constexpr std::string_view name = "max";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0}) | keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
};

struct Min {
  using Attrs = ReduceAttrs;
  static constexpr std::string_view name = "min";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0}) | keep_outputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// The gradient of both: (cotangent, x, y) -> the cotangent where x equals y for the first time in row-major order
/// (or both are NaN), else 0.
struct ExtremumGrad {
  using Attrs = ReduceAttrs;
  static constexpr std::string_view name = "extremum_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// Over all dims, to a scalar. Gradient: the cotangent, to the first of equal extrema in row-major order.
/// Throws ShapeError when a reduced dim has extent 0.
template <TensorLike X>
auto max(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Max>(all_axes(Applier<X>::value(x).shape()), at, x);
}
/// Over the dims listed; negative counts from the end.
template <TensorLike X>
auto max(const X& x, std::span<const int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return apply<Max>(reduce_axes(Max::name, Applier<X>::value(x).shape(), dims, keep), at, x);
}
template <TensorLike X>
auto max(const X& x, std::initializer_list<int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return max(x, std::span<const int>(dims.begin(), dims.size()), keep, at);
}

/// As max.
template <TensorLike X>
auto min(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Min>(all_axes(Applier<X>::value(x).shape()), at, x);
}
template <TensorLike X>
auto min(const X& x, std::span<const int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return apply<Min>(reduce_axes(Min::name, Applier<X>::value(x).shape(), dims, keep), at, x);
}
template <TensorLike X>
auto min(const X& x, std::initializer_list<int> dims, bool keep = false,
         const SourceLocation& at = SourceLocation::current()) {
  return min(x, std::span<const int>(dims.begin(), dims.size()), keep, at);
}

}  // namespace lamina
