#include "lamina/kernels/tanh/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Tanh::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Tanh::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Tanh::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<TanhGrad>({}, {}, cotangents[0], saved.output(0))};
}

template <class Real>
void Tanh::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::tanh;
  reference_unary(in, out, [](Real x) { return tanh(x); });
}

std::vector<Sample<Tanh::Attrs>> Tanh::samples() { return unary_samples(Attrs{}, Fill::normal(2)); }

LAMINA_INSTANTIATE_REFERENCE(Tanh);

Metas TanhGrad::infer(const Attrs&, MetasIn in) { return infer_same(name, in); }

Cost TanhGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(3, in, out); }

Tensors TanhGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void TanhGrad::reference(const Attrs&, In<Real> in, Out<Real> out) {
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) {
    const Real dy = in[0].real[i], y = in[1].real[i];
    out[0].real[i] = dy * (Real(1) - y * y);
  }
}

std::vector<Sample<TanhGrad::Attrs>> TanhGrad::samples() {
  return same_shape_samples(Attrs{}, {Fill::normal(), Fill::uniform(-1, 1)});
}

LAMINA_INSTANTIATE_REFERENCE(TanhGrad);

}  // namespace lamina
