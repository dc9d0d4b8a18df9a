// maximum and minimum: elementwise, with broadcasting.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Maximum {
  struct Attrs {};
  static constexpr std::string_view name = "maximum";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0, 1}), keep_inputs({0, 1})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 0};
};

struct Minimum {
  struct Attrs {};
  static constexpr std::string_view name = "minimum";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({0, 1}), keep_inputs({0, 1})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// One operand's gradient of either, before it is summed to the operand's shape: (dy, a, b) -> dy where the forward op
/// took the operand, else 0. a and b broadcast to the shape of dy.
struct MaximumGrad {
  struct Attrs {
    bool minimum = false;
    bool second = false;  ///< the gradient of b
  };
  static constexpr std::string_view name = "maximum_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 0};
};

/// The larger of a and b, broadcast as numpy does; NaN if either is. Floating dtypes, equal. Gradient: the cotangent
/// goes to the operand taken, of equal ones to a.
template <TensorLike A, TensorLike B>
auto maximum(const A& a, const B& b, const SourceLocation& at = SourceLocation::current()) {
  return apply<Maximum>({}, at, a, b);
}

/// The smaller of a and b, otherwise as maximum.
template <TensorLike A, TensorLike B>
auto minimum(const A& a, const B& b, const SourceLocation& at = SourceLocation::current()) {
  return apply<Minimum>({}, at, a, b);
}

}  // namespace lamina
