#include "lamina/kernels/log/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/div/op.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Log::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Log::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Log::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {div(cotangents[0], saved.input(0))};
}

template <class Real>
void Log::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::log;
  reference_unary(in, out, [](Real x) { return log(x); });
}

std::vector<Sample<Log::Attrs>> Log::samples() { return unary_samples(Attrs{}, Fill::uniform(0.05, 9)); }

LAMINA_INSTANTIATE_REFERENCE(Log);

}  // namespace lamina
