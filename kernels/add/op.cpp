#include "lamina/kernels/add/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Add::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Add::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Add::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (needs[i]) gradients[i] = sum_to(cotangents[0], saved.input_meta(i).shape);
  }
  return gradients;
}

template <class Real>
void Add::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return a + b; });
}

std::vector<Sample<Add::Attrs>> Add::samples() { return broadcast_samples(Attrs{}, Fill::normal(), Fill::normal()); }

LAMINA_INSTANTIATE_REFERENCE(Add);

}  // namespace lamina
