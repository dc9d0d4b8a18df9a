#include "lamina/kernels/exp/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/mul/op.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Exp::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Exp::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Exp::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {mul(cotangents[0], saved.output(0))};
}

template <class Real>
void Exp::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::exp;
  reference_unary(in, out, [](Real x) { return exp(x); });
}

// What f16 holds; the whole range in bf16, and in f32 by tests/elementwise.
std::vector<Sample<Exp::Attrs>> Exp::samples() {
  auto samples = unary_samples(Attrs{}, Fill::uniform(-9, 8));
  samples.push_back({"range_bf16", {}, {{{515}, Fill::uniform(-91, 88), DType::bf16}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Exp);

}  // namespace lamina
