// full: a tensor whose elements are all one value.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Full {
  struct Attrs {
    Shape shape;
    DType dtype = DType::f32;
    double value = 0;
  };
  static constexpr std::string_view name = "full";
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

/// Every element `value`, rounded to floating dtypes; of the others it must be a value (ValueError). No operands, so no
/// gradient.
inline Tensor full(const Device& device, const Shape& shape, double value, DType dtype = DType::f32,
                   const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  const Full::Attrs attrs{shape, dtype, value};
  return std::move(run_on(device, record_of<Full>, &attrs, {})[0]);
}

/// Of the shape, dtype and device of x, whose values are not read.
template <TensorLike X>
Tensor full_like(const X& x, double value, const SourceLocation& at = SourceLocation::current()) {
  const Tensor& like = Applier<X>::value(x);
  return full(like.device(), like.shape(), value, like.dtype(), at);
}
template <TensorLike X>
Tensor zeros_like(const X& x, const SourceLocation& at = SourceLocation::current()) {
  return full_like(x, 0, at);
}

}  // namespace lamina
