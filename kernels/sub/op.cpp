#include "lamina/kernels/sub/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/neg/op.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Sub::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Sub::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Sub::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor& dy = cotangents[0];
  Tensors gradients(2);
  if (needs[0]) gradients[0] = sum_to(dy, saved.input_meta(0).shape);
  if (needs[1]) gradients[1] = neg(sum_to(dy, saved.input_meta(1).shape));
  return gradients;
}

template <class Real>
void Sub::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return a - b; });
}

std::vector<Sample<Sub::Attrs>> Sub::samples() { return broadcast_samples(Attrs{}, Fill::normal(), Fill::normal()); }

LAMINA_INSTANTIATE_REFERENCE(Sub);

}  // namespace lamina
