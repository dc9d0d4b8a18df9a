#include "lamina/kernels/offset/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Offset::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Offset::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Offset::vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs) { return {cotangents[0]}; }

template <class Real>
void Offset::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  reference_unary(in, out, [&](Real x) { return x + Real(attrs.value); });
}

// A lone result near 0 has the error of its terms.
std::vector<Sample<Offset::Attrs>> Offset::samples() {
  return unary_samples(Attrs{0.7}, Fill::normal().away_from(-0.7, 0.4));
}

LAMINA_INSTANTIATE_REFERENCE(Offset);

}  // namespace lamina
