#include "lamina/kernels/maximum/op.hpp"

#include <cmath>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

Tensors gradients_of(bool minimum, const Saved& saved, const Tensor& dy, Needs needs) {
  Tensors gradients(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!needs[i]) continue;
    const Tensor taken = apply<MaximumGrad>({minimum, i == 1}, {}, dy, saved.input(0), saved.input(1));
    gradients[i] = sum_to(taken, saved.input_meta(i).shape);
  }
  return gradients;
}

// One comparison of numbers; whether b is NaN is a question about its bits.
template <class Real>
bool takes_second(bool minimum, Real a, Real b) {
  const bool beyond = minimum ? b < a : b > a;
  return beyond || std::isnan(static_cast<double>(b));
}

// Values on a grid, so that both operands tie now and then; gradients there are one-sided and not sampled.
std::vector<SampleOperand> operands(const Shape& a, const Shape& b) {
  return {{a, Fill::uniform(-1, 1).away_from(0, 0.2)}, {b, Fill::uniform(-0.19, 0.19)}};
}

template <class Attrs>
std::vector<Sample<Attrs>> samples_apart() {
  std::vector<Sample<Attrs>> samples;
  for (Sample<Attrs>& s : broadcast_samples(Attrs{}, Fill::normal(), Fill::normal())) {
    s.inputs = operands(s.inputs[0].shape, s.inputs[1].shape);
    samples.push_back(std::move(s));
  }
  return samples;
}

}  // namespace

Metas Maximum::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Maximum::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Maximum::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  return gradients_of(false, saved, cotangents[0], needs);
}

template <class Real>
void Maximum::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return takes_second(false, a, b) ? b : a; });
}

std::vector<Sample<Maximum::Attrs>> Maximum::samples() { return samples_apart<Attrs>(); }

LAMINA_INSTANTIATE_REFERENCE(Maximum);

Metas Minimum::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

Cost Minimum::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Minimum::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs needs) {
  return gradients_of(true, saved, cotangents[0], needs);
}

template <class Real>
void Minimum::reference(const Attrs&, In<Real> in, Out<Real> out) {
  reference_binary(in, out, [](Real a, Real b) { return takes_second(true, a, b) ? b : a; });
}

std::vector<Sample<Minimum::Attrs>> Minimum::samples() { return samples_apart<Attrs>(); }

LAMINA_INSTANTIATE_REFERENCE(Minimum);

Metas MaximumGrad::infer(const Attrs&, MetasIn in) {
  Metas out = infer_elementwise(name, in);
  if (!(out[0].shape == in[0].shape)) {
    fail<ShapeError>(name, "operand 0: {} is not the shape {} of the result", to_string(in[0].shape),
                     to_string(out[0].shape));
  }
  return out;
}

Cost MaximumGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors MaximumGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void MaximumGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& shape = out[0].shape;
  for (std::int64_t n = 0; n < shape.count(); ++n) {
    const Real a = in[1].real[broadcast_index(n, shape, in[1].shape)];
    const Real b = in[2].real[broadcast_index(n, shape, in[2].shape)];
    out[0].real[n] = takes_second(attrs.minimum, a, b) == attrs.second ? in[0].real[n] : Real(0);
  }
}

std::vector<Sample<MaximumGrad::Attrs>> MaximumGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const bool minimum : {false, true}) {
    for (const bool second : {false, true}) {
      const std::string suffix = fmt::format("_{}_{}", minimum ? "min" : "max", second ? "b" : "a");
      auto add = [&](const std::string& name, const Shape& dy, const Shape& a, const Shape& b) {
        samples.push_back({name + suffix, {minimum, second}, {{dy}, {a, Fill::normal()}, {b, Fill::normal()}}});
      };
      add("one", Shape{}, Shape{}, Shape{});
      add("empty", {0, 3}, {0, 3}, {3});
      add("odd", {3, 7}, {3, 7}, {3, 7});
      add("row", {5, 19}, {19}, {5, 19});
      add("channel", {2, 3, 4, 5}, {2, 3, 4, 5}, {3, 1, 1});
      samples.push_back({"ties" + suffix, {minimum, second}, {{{9}}, {{9}, Fill::zeros()}, {{9}, Fill::zeros()}}});
    }
  }
  samples.push_back({"blocks", {}, {{{20483}}, {{20483}}, {{20483}}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(MaximumGrad);

}  // namespace lamina
