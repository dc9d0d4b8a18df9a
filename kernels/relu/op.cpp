#include "lamina/kernels/relu/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Relu::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Relu::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Relu::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<ReluGrad>({}, {}, cotangents[0], saved.output(0))};
}

template <class Real>
void Relu::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_unary(in, out, [](Real x) { return x < Real(0) ? Real(0) : x; });
}

std::vector<Sample<Relu::Attrs>> Relu::samples() { return unary_samples(Attrs{}, Fill::normal().away_from(0)); }

LAMINA_INSTANTIATE_REFERENCE(Relu);

Metas ReluGrad::infer(const Attrs&, MetasIn in) { return infer_same(name, in); }

Cost ReluGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors ReluGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void ReluGrad::reference(const Attrs&, In<Real> in, Out<Real> out) {
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) {
    const Real dy = in[0].real[i], y = in[1].real[i];
    out[0].real[i] = y <= Real(0) ? Real(0) : dy;
  }
}

std::vector<Sample<ReluGrad::Attrs>> ReluGrad::samples() {
  return same_shape_samples(Attrs{}, {Fill::normal(), Fill::normal().away_from(0)});
}

LAMINA_INSTANTIATE_REFERENCE(ReluGrad);

}  // namespace lamina
