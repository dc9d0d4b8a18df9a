#include "lamina/kernels/neg/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Neg::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Neg::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(0, in, out); }

Tensors Neg::vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs) { return {neg(cotangents[0])}; }

template <class Real>
void Neg::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_unary(in, out, [](Real x) { return -x; });
}

std::vector<Sample<Neg::Attrs>> Neg::samples() { return unary_samples(Attrs{}, Fill::normal()); }

LAMINA_INSTANTIATE_REFERENCE(Neg);

}  // namespace lamina
