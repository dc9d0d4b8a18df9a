#include "lamina/kernels/div/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/mul/op.hpp"
#include "lamina/kernels/neg/op.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Div::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Div::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Div::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor& dy = cotangents[0];
  Tensors gradients(2);
  const Tensor g = div(dy, saved.input(1));
  if (needs[0]) gradients[0] = sum_to(g, saved.input_meta(0).shape);
  if (needs[1]) gradients[1] = neg(sum_to(mul(g, saved.output(0)), saved.input_meta(1).shape));
  return gradients;
}

template <class Real>
void Div::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return a / b; });
}

std::vector<Sample<Div::Attrs>> Div::samples() {
  return broadcast_samples(Attrs{}, Fill::normal(), Fill::normal().away_from(0, 0.5));
}

LAMINA_INSTANTIATE_REFERENCE(Div);

}  // namespace lamina
