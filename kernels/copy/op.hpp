// copy: the elements of a tensor in dense row-major order; a dtype conversion on the way if wanted.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Copy {
  struct Attrs {
    DType dtype = DType::f32;  ///< of the result
  };
  static constexpr std::string_view name = "copy";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 1};
};

/// Any shape and layout -> the same shape, dense. Gradient: the cotangent, in x's dtype.
template <TensorLike X>
auto copy(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return apply<Copy>({Applier<X>::value(x).dtype()}, at, x);
}

/// The elements converted to `dtype`: to floating types rounding to nearest even, to integers toward zero.
template <TensorLike X>
auto cast(const X& x, DType dtype, const SourceLocation& at = SourceLocation::current()) {
  return apply<Copy>({dtype}, at, x);
}

/// The tensor itself if it is dense, else a copy.
inline Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : copy(x); }

}  // namespace lamina
