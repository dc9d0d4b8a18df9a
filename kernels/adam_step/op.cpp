#include "lamina/kernels/adam_step/op.hpp"

#include <cmath>

#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/update.hpp"

namespace lamina {

Metas AdamStep::infer(const Attrs& attrs, MetasIn in) {
  check_update(name, attrs.count, 4, in);
  if (attrs.step < 1) fail<ValueError>(name, "step {}; the first is 1", attrs.step);
  return update_outputs(attrs.count, {0, 2, 3}, in);
}

// The gradient 3, the mean 3, the square 4, the corrections 2, the denominator 2, the update 4.
Cost AdamStep::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  std::int64_t elements = 0;
  for (int i = 0; i < attrs.count; ++i) elements += in[static_cast<std::size_t>(i)].shape.count();
  return stream_cost(18 * elements, in, out);
}

Tensors AdamStep::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void AdamStep::reference(const Attrs& a, In<Real> in, Out<Real> out) {
  using std::sqrt;
  const auto n = static_cast<std::size_t>(a.count);
  const Real correction1(1 - std::pow(a.beta1, static_cast<double>(a.step)));
  const Real correction2(1 - std::pow(a.beta2, static_cast<double>(a.step)));
  const Real decay(a.decoupled ? 0 : a.weight_decay);
  const Real keep(a.decoupled ? 1 - a.lr * a.weight_decay : 1);
  for (std::size_t t = 0; t < n; ++t) {
    for (std::int64_t i = 0; i < in[t].shape.count(); ++i) {
      const Real value = in[t].real[i];
      const Real g = Real(a.gradient_scale) * in[n + t].real[i] + decay * value;
      const Real mean = Real(a.beta1) * in[2 * n + t].real[i] + Real(1 - a.beta1) * g;
      const Real square = Real(a.beta2) * in[3 * n + t].real[i] + Real(1 - a.beta2) * (g * g);
      const Real denominator = sqrt(square / correction2) + Real(a.epsilon);
      out[n + t].real[i] = mean;
      out[2 * n + t].real[i] = square;
      out[t].real[i] = keep * value - Real(a.lr) * ((mean / correction1) / denominator);
    }
  }
}

std::vector<Sample<AdamStep::Attrs>> AdamStep::samples() {
  const std::vector<Fill> fills = {Fill::normal(), Fill::normal(), Fill::normal(0.1), Fill::uniform(0, 1)};
  const std::vector<Shape> shapes = {{3, 7}, Shape{}, {0, 4}, {40961}};
  const Attrs a{.count = 4, .lr = 0.01, .epsilon = 1e-6, .weight_decay = 0.1, .step = 3, .gradient_scale = 0.5};
  Attrs decoupled = a, one = a;
  decoupled.decoupled = true;
  one.count = 1;
  return {{"adam", a, update_operands(shapes, fills)},
          {"adamw", decoupled, update_operands(shapes, fills)},
          {"one", one, update_operands({{5}}, fills)}};
}

LAMINA_INSTANTIATE_REFERENCE(AdamStep);

}  // namespace lamina
