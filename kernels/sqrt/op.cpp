#include "lamina/kernels/sqrt/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/div/op.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/scale/op.hpp"

namespace lamina {

Metas Sqrt::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Sqrt::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Sqrt::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {div(scale(cotangents[0], 0.5), saved.output(0))};
}

template <class Real>
void Sqrt::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::sqrt;
  reference_unary(in, out, [](Real x) { return sqrt(x); });
}

std::vector<Sample<Sqrt::Attrs>> Sqrt::samples() { return unary_samples(Attrs{}, Fill::uniform(0.05, 9)); }

LAMINA_INSTANTIATE_REFERENCE(Sqrt);

}  // namespace lamina
