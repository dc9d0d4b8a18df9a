// concat: tensors one after the other along a dim.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Concat {
  struct Attrs {
    int dim = 0;
  };
  static constexpr std::string_view name = "concat";
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

/// Any number (>= 1) of tensors of one dtype whose extents agree but along `dim` (negative counts from the end).
/// Gradients: the slices of the cotangent. Throws ShapeError, DTypeError.
template <TensorLike X>
auto concat(std::span<const X> x, int dim, const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  if (x.empty()) fail<ShapeError>(Concat::name, "no operands");
  return apply_all<Concat>({normalize_dim(Concat::name, dim, Applier<X>::value(x[0]).shape().rank())}, at, x);
}
template <TensorLike X>
auto concat(std::initializer_list<X> x, int dim, const SourceLocation& at = SourceLocation::current()) {
  return concat(std::span<const X>(x.begin(), x.size()), dim, at);
}

}  // namespace lamina
