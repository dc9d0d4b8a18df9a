// matmul: the matrix product over the last two dims, leading dims broadcast.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Matmul {
  struct Attrs {
    bool transpose_a = false;  ///< a is (..., K, M)
    bool transpose_b = false;  ///< b is (..., N, K)
  };
  static constexpr std::string_view name = "matmul";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {keep_inputs({1}), keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// (..., M, K) x (..., K, N) -> (..., M, N): c[m,n] = sum over k of a[m,k] b[k,n], accumulated in f32 for f32, f16 and
/// bf16, in f64 for f64. Leading dims broadcast as numpy does; both operands have a rank of 2 or more. K = 0 gives
/// zeros. Operands may be views: transposed, sliced and expanded ones are read where they are. Unless M or N is 1, a
/// row of the result has the same bits whatever the other rows and however many. Gradients: da = dc b^T, db = a^T dc,
/// summed over broadcast dims. Throws ShapeError, DTypeError (floating, equal).
template <TensorLike A, TensorLike B>
auto matmul(const A& a, const B& b, Matmul::Attrs attrs = {}, const SourceLocation& at = SourceLocation::current()) {
  return apply<Matmul>(attrs, at, a, b);
}

}  // namespace lamina
