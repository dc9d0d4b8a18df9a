// permute: the dims in a new order, as a dense copy. Tensor::permute is the view.
#pragma once

#include <array>

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Permute {
  struct Attrs {
    std::array<int, kMaxRank> order{};  ///< dim i of the result is dim order[i] of the operand
  };
  static constexpr std::string_view name = "permute";
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
/// Throws ShapeError unless `order` is a permutation of the dims; negative counts from the end.
Permute::Attrs permute_attrs(const Shape& shape, std::span<const int> order);
Permute::Attrs transpose_attrs(const Shape& shape, int a, int b);
}  // namespace detail

/// Dim i of the result is dim order[i] of x (negative counts from the end); any dtype. Gradient: the inverse.
/// Throws ShapeError unless `order` is a permutation.
template <TensorLike X>
auto permute(const X& x, std::span<const int> order, const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  return apply<Permute>(detail::permute_attrs(Applier<X>::value(x).shape(), order), at, x);
}
template <TensorLike X>
auto permute(const X& x, std::initializer_list<int> order, const SourceLocation& at = SourceLocation::current()) {
  return permute(x, std::span<const int>(order.begin(), order.size()), at);
}

/// Dims a and b swapped; negative counts from the end.
template <TensorLike X>
auto transpose(const X& x, int a, int b, const SourceLocation& at = SourceLocation::current()) {
  CallSite site(at);
  return apply<Permute>(detail::transpose_attrs(Applier<X>::value(x).shape(), a, b), at, x);
}

}  // namespace lamina
