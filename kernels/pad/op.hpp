// pad: a border of one value around a tensor.
#pragma once

#include <array>

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Pad {
  struct Attrs {
    std::array<std::int64_t, kMaxRank> lo{};  ///< elements added before each dim
    std::array<std::int64_t, kMaxRank> hi{};  ///< and after it
    double value = 0;
  };
  static constexpr std::string_view name = "pad";
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

namespace detail {
/// One pair of numbers for each dim. Throws ShapeError.
Pad::Attrs pad_attrs(const Shape& shape, std::span<const std::int64_t> lo, std::span<const std::int64_t> hi,
                     double value);
}  // namespace detail

/// lo[i] elements before and hi[i] after dim i, all `value` converted to x's dtype; any dtype. Gradient: the part of
/// the cotangent that is x's. Throws ShapeError for negative amounts or a wrong number of them.
template <TensorLike X>
auto pad(const X& x, std::span<const std::int64_t> lo, std::span<const std::int64_t> hi, double value = 0,
         const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  return apply<Pad>(detail::pad_attrs(Applier<X>::value(x).shape(), lo, hi, value), at, x);
}
template <TensorLike X>
auto pad(const X& x, std::initializer_list<std::int64_t> lo, std::initializer_list<std::int64_t> hi, double value = 0,
         const SourceLocation& at = SourceLocation::current()) {
  return pad(x, std::span<const std::int64_t>(lo.begin(), lo.size()),
             std::span<const std::int64_t>(hi.begin(), hi.size()), value, at);
}

}  // namespace lamina
