// slice: every step-th element of a range along one dim, as a dense copy. Tensor::slice is the view.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Slice {
  struct Attrs {
    int dim = 0;
    std::int64_t lo = 0;
    std::int64_t hi = 0;
    std::int64_t step = 1;
  };
  static constexpr std::string_view name = "slice";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
  static constexpr bool reads_part = true;
};

/// The gradient of slice: the cotangent at the places it was read from, zero elsewhere.
struct SliceGrad {
  struct Attrs {
    int dim = 0;
    std::int64_t lo = 0;
    std::int64_t step = 1;
    std::int64_t extent = 0;  ///< of the dim that was sliced
  };
  static constexpr std::string_view name = "slice_grad";
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

/// Elements lo, lo + step, ... below hi of one dim (negative counts from the end); any dtype. Throws ShapeError unless
/// 0 <= lo <= hi <= extent and step >= 1. Gradient: the cotangent in its places, zero elsewhere.
template <TensorLike X>
auto slice(const X& x, int dim, std::int64_t lo, std::int64_t hi, std::int64_t step = 1,
           const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  return apply<Slice>({normalize_dim(Slice::name, dim, Applier<X>::value(x).shape().rank()), lo, hi, step}, at, x);
}

}  // namespace lamina
