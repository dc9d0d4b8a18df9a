// dropout: elements set to zero at random (Srivastava et al. 2014), the others scaled so that the mean stays.
#pragma once

#include "lamina/core/rng.hpp"
#include "lamina/kernels/apply.hpp"

namespace lamina {

struct Dropout {
  struct Attrs {
    double rate = 0.5;               ///< share of elements dropped, in [0, 1)
    Rng rng = {};                    ///< of the layer and step
    std::int64_t first_example = 0;  ///< id in the run of x's first example, >= 0
  };
  static constexpr std::string_view name = "dropout";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr bool in_place = true;
  static constexpr Tolerance tolerance{.ulps = 3};
};

/// (N, ...) -> the same shape; dim 0 is the example. Element e of example n is x / (1 - rate) where
/// rng.uniform(first_example + n, e) >= rate, else 0: the same elements on every device, thread count and split of the
/// batch. Floating dtypes. Gradient: dropout of the cotangent; the mask is computed again, nothing is kept.
/// Throws ShapeError for a scalar, ValueError for attributes outside their ranges.
template <TensorLike X>
auto dropout(const X& x, const Dropout::Attrs& attrs, const SourceLocation& at = SourceLocation::current()) {
  return apply<Dropout>(attrs, at, x);
}

}  // namespace lamina
