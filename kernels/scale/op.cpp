#include "lamina/kernels/scale/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Scale::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Scale::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Scale::vjp(const Attrs& attrs, const Saved&, TensorsIn cotangents, Needs) {
  return {scale(cotangents[0], attrs.factor)};
}

template <class Real>
void Scale::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  reference_unary(in, out, [&](Real x) { return Real(attrs.factor) * x; });
}

std::vector<Sample<Scale::Attrs>> Scale::samples() { return unary_samples(Attrs{-1.7}, Fill::normal()); }

LAMINA_INSTANTIATE_REFERENCE(Scale);

}  // namespace lamina
