#include "lamina/kernels/global_norm/op.hpp"

#include <cmath>

#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas GlobalNorm::infer(const Attrs&, MetasIn in) {
  if (in.empty()) fail<ShapeError>(name, "no operands");
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i].dtype) || in[i].dtype != in[0].dtype) {
      fail<DTypeError>(name, "operand {}: {} does not match {}, or is not floating", i, name_of(in[i].dtype),
                       name_of(in[0].dtype));
    }
  }
  return {{Shape{}, in[0].dtype}};
}

Cost GlobalNorm::cost(const Attrs&, MetasIn in, MetasIn out) {
  std::int64_t elements = 0;
  for (const Meta& m : in) elements += m.shape.count();
  return stream_cost(2 * elements + 1, in, out);
}

Tensors GlobalNorm::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void GlobalNorm::reference(const Attrs&, In<Real> in, Out<Real> out) {
  using std::sqrt;
  Real sum(0);
  for (const RefIn<Real>& x : in) {
    for (std::int64_t i = 0; i < x.shape.count(); ++i) sum += x.real[i] * x.real[i];
  }
  out[0].real[0] = sqrt(sum);
}

std::vector<Sample<GlobalNorm::Attrs>> GlobalNorm::samples() {
  return {
      {"one", {}, {{Shape{}}}}, {"several", {}, {{{3, 7}}, {{0, 2}}, {{41}}, {{40961}}}}, {"empty", {}, {{{0, 3}}}}};
}

LAMINA_INSTANTIATE_REFERENCE(GlobalNorm);

}  // namespace lamina
