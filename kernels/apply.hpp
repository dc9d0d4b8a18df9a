// apply<Op>: the one path from an op's free function to its record, over tensors and over vars.
//
//   template <TensorLike X>
//   auto gelu(const X& x, Gelu::Attrs attrs = {}, const SourceLocation& at = SourceLocation::current()) {
//     return apply<Gelu>(attrs, at, x);
//   }
//
// Over tensors it runs; over vars (autograd/) it runs and records. Tensors among vars are constants.
#pragma once

#include <array>

#include "lamina/kernels/run.hpp"

namespace lamina {

/// How ops are applied to values of type V. Specialised for Tensor here and for Var in autograd.
template <class V>
struct Applier;

template <>
struct Applier<Tensor> {
  static const Tensor& value(const Tensor& t) { return t; }
  static Tensors apply(const OpRecord& op, const void* attrs, std::span<const Tensor* const> in) {
    return run(op, attrs, in);
  }
};

template <class T>
concept TensorLike = requires(const T& t) { Applier<T>::value(t); };

namespace detail {
template <class... X>
struct CommonValue;
template <class X>
struct CommonValue<X> {
  using type = X;
};
template <class X, class Y, class... Rest>
struct CommonValue<X, Y, Rest...> {
  using type = typename CommonValue<std::conditional_t<std::is_same_v<X, Tensor>, Y, X>, Rest...>::type;
};
}  // namespace detail

/// Tensor when all of X are tensors, else the var type among them.
template <TensorLike... X>
using ValueOf = typename detail::CommonValue<X...>::type;

/// One output: the value. Several: a vector of values.
template <Op O, TensorLike... X>
auto apply(const typename O::Attrs& attrs, const SourceLocation& at, const X&... x) {
  CallSite site(at);
  using V = ValueOf<X...>;
  auto out = [&] {
    if constexpr (std::is_same_v<V, Tensor>) {
      const std::array<const Tensor*, sizeof...(X)> in{&x...};
      return Applier<V>::apply(record_of<O>, &attrs, in);
    } else {
      return Applier<V>::apply(record_of<O>, &attrs, x...);
    }
  }();
  if constexpr (O::outputs == 1) {
    return V(std::move(out[0]));
  } else {
    return out;
  }
}

/// The same for an op with any number of operands.
template <Op O, TensorLike V>
auto apply_all(const typename O::Attrs& attrs, const SourceLocation& at, std::span<const V> x) {
  CallSite site(at);
  InlineVector<const V*, 8> in;
  for (const V& v : x) in.push_back(&v);
  auto out = Applier<V>::apply(record_of<O>, &attrs, std::span<const V* const>(in));
  if constexpr (O::outputs == 1) {
    return V(std::move(out[0]));
  } else {
    return out;
  }
}

}  // namespace lamina
