#include "lamina/kernels/mul/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Mul::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Mul::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Mul::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor& dy = cotangents[0];
  Tensors gradients(2);
  if (needs[0]) gradients[0] = sum_to(mul(dy, saved.input(1)), saved.input_meta(0).shape);
  if (needs[1]) gradients[1] = sum_to(mul(dy, saved.input(0)), saved.input_meta(1).shape);
  return gradients;
}

template <class Real>
void Mul::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return a * b; });
}

std::vector<Sample<Mul::Attrs>> Mul::samples() { return broadcast_samples(Attrs{}, Fill::normal(), Fill::normal()); }

LAMINA_INSTANTIATE_REFERENCE(Mul);

}  // namespace lamina
