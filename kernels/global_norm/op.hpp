// global_norm: the Euclidean norm of all elements of any number of tensors, for clipping.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct GlobalNorm {
  struct Attrs {};
  static constexpr std::string_view name = "global_norm";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 2};
};

/// A scalar of the tensors' dtype; squares are summed in blocks, the blocks in double. At least one tensor; floating,
/// equal dtypes. Has no gradient.
inline Tensor global_norm(std::span<const Tensor> x, const SourceLocation& at = SourceLocation::current()) {
  return apply_all<GlobalNorm>({}, at, x);
}

}  // namespace lamina
