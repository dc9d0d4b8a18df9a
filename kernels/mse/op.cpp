#include "lamina/kernels/mse/op.hpp"

#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/neg/op.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Mse::infer(const Attrs&, MetasIn in) {
  infer_same(name, in);
  if (in[0].shape.count() == 0) {
    fail<ShapeError>(name, "operand 0: {} has nothing to take the mean of", to_string(in[0].shape));
  }
  return {{Shape{}, in[0].dtype}};
}

// A difference, a square and a sum an element; the division by their number.
Cost Mse::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(3 * in[0].shape.count() + 1, in, out); }

Tensors Mse::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  Tensors gradients(2);
  const Tensor first = apply<MseGrad>({}, {}, cotangents[0], saved.input(0), saved.input(1));
  if (needs[0]) gradients[0] = first;
  if (needs[1]) gradients[1] = neg(first);
  return gradients;
}

template <class Real>
void Mse::reference(const Attrs&, In<Real> in, Out<Real> out) {
  const std::int64_t n = in[0].shape.count();
  Real sum(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const Real error = in[0].real[i] - in[1].real[i];
    sum += error * error;
  }
  out[0].real[0] = sum / Real(static_cast<double>(n));
}

std::vector<Sample<Mse::Attrs>> Mse::samples() {
  auto samples = same_shape_samples(Attrs{}, {Fill::normal(), Fill::normal()});
  std::erase_if(samples, [](const Sample<Attrs>& s) { return s.name == "empty"; });
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Mse);

Metas MseGrad::infer(const Attrs&, MetasIn in) {
  if (in[0].shape.rank() != 0) fail<ShapeError>(name, "operand 0: {} is not a scalar", to_string(in[0].shape));
  Metas out = infer_elementwise(name, in);
  if (!(in[1].shape == in[2].shape)) {
    fail<ShapeError>(name, "operand 2: shape {} does not match {}", to_string(in[2].shape), to_string(in[1].shape));
  }
  return out;
}

// The factor of all, where there are any; a difference and a product an element.
Cost MseGrad::cost(const Attrs&, MetasIn in, MetasIn out) {
  const std::int64_t n = in[1].shape.count();
  return stream_cost(n == 0 ? 0 : 2 * n + 1, in, out);
}

Tensors MseGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void MseGrad::reference(const Attrs&, In<Real> in, Out<Real> out) {
  const std::int64_t n = out[0].shape.count();
  if (n == 0) return;
  const Real factor = in[0].real[0] * Real(2 / static_cast<double>(n));
  for (std::int64_t i = 0; i < n; ++i) out[0].real[i] = factor * (in[1].real[i] - in[2].real[i]);
}

std::vector<Sample<MseGrad::Attrs>> MseGrad::samples() {
  auto samples = same_shape_samples(Attrs{}, {Fill::normal(), Fill::normal(), Fill::normal()});
  for (Sample<Attrs>& s : samples) s.inputs[0].shape = Shape{};
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(MseGrad);

}  // namespace lamina
