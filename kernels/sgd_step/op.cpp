#include "lamina/kernels/sgd_step/op.hpp"

#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/update.hpp"

namespace lamina {

Metas SgdStep::infer(const Attrs& attrs, MetasIn in) {
  const bool velocities = attrs.momentum > 0;
  check_update(name, attrs.count, velocities ? 3 : 2, in);
  return velocities ? update_outputs(attrs.count, {0, 2}, in) : update_outputs(attrs.count, {0}, in);
}

// The gradient's scale and decay 3, the velocity 2, Nesterov's step 2, the update 2.
Cost SgdStep::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  std::int64_t elements = 0;
  for (int i = 0; i < attrs.count; ++i) elements += in[static_cast<std::size_t>(i)].shape.count();
  const int flops = attrs.momentum > 0 ? (attrs.nesterov ? 9 : 7) : 5;
  return stream_cost(flops * elements, in, out);
}

Tensors SgdStep::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void SgdStep::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const auto n = static_cast<std::size_t>(attrs.count);
  for (std::size_t t = 0; t < n; ++t) {
    for (std::int64_t i = 0; i < in[t].shape.count(); ++i) {
      const Real value = in[t].real[i];
      const Real g = Real(attrs.gradient_scale) * in[n + t].real[i] + Real(attrs.weight_decay) * value;
      Real step = g;
      if (attrs.momentum > 0) {
        const Real velocity = Real(attrs.momentum) * in[2 * n + t].real[i] + g;
        out[n + t].real[i] = velocity;
        step = attrs.nesterov ? g + Real(attrs.momentum) * velocity : velocity;
      }
      out[t].real[i] = value - Real(attrs.lr) * step;
    }
  }
}

std::vector<Sample<SgdStep::Attrs>> SgdStep::samples() {
  const Fill n = Fill::normal();
  const std::vector<Shape> shapes = {{3, 7}, Shape{}, {0, 4}, {40961}};
  const Attrs a{.count = 4, .lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .gradient_scale = 0.5};
  Attrs plain = a, nesterov = a, one = a;
  plain.momentum = 0;
  nesterov.nesterov = true;
  one.count = 1;
  return {{"momentum", a, update_operands(shapes, {n, n, n})},
          {"nesterov", nesterov, update_operands(shapes, {n, n, n})},
          {"plain", plain, update_operands(shapes, {n, n})},
          {"one", one, update_operands({{5}}, {n, n, n})}};
}

LAMINA_INSTANTIATE_REFERENCE(SgdStep);

}  // namespace lamina
