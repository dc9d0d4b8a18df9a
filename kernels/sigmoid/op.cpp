#include "lamina/kernels/sigmoid/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Sigmoid::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Sigmoid::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(3, in, out); }

Tensors Sigmoid::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<SigmoidGrad>({}, {}, cotangents[0], saved.output(0))};
}

template <class Real>
void Sigmoid::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::exp;
  reference_unary(in, out, [](Real x) { return Real(1) / (Real(1) + exp(-x)); });
}

std::vector<Sample<Sigmoid::Attrs>> Sigmoid::samples() { return unary_samples(Attrs{}, Fill::normal(3)); }

LAMINA_INSTANTIATE_REFERENCE(Sigmoid);

Metas SigmoidGrad::infer(const Attrs&, MetasIn in) { return infer_same(name, in); }

Cost SigmoidGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(3, in, out); }

Tensors SigmoidGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void SigmoidGrad::reference(const Attrs&, In<Real> in, Out<Real> out) {
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) {
    const Real dy = in[0].real[i], y = in[1].real[i];
    out[0].real[i] = dy * y * (Real(1) - y);
  }
}

std::vector<Sample<SigmoidGrad::Attrs>> SigmoidGrad::samples() {
  return same_shape_samples(Attrs{}, {Fill::normal(), Fill::uniform(0, 1)});
}

LAMINA_INSTANTIATE_REFERENCE(SigmoidGrad);

}  // namespace lamina
