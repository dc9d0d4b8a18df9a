#include "lamina/kernels/max/op.hpp"

#include <cmath>
#include <limits>

#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

template <class Real>
bool is_nan(Real x) {
  return std::isnan(static_cast<double>(x));
}

Metas infer_extremum(std::string_view op, const ReduceAttrs& attrs, MetasIn in) {
  Metas out = infer_reduction(op, attrs, in);
  check_reduces_something(op, attrs, in[0].shape);
  return out;
}

Cost extremum_cost(MetasIn in, MetasIn out) { return stream_cost(in[0].shape.count(), in, out); }

// Keeps NaN once there; `better(a, b)`: a replaces b.
template <class Real, class Better>
void reference_extremum(const ReduceAttrs& attrs, In<Real> in, Out<Real> out, double worst, Better better) {
  Real* y = out[0].real;
  for (std::int64_t o = 0; o < out[0].shape.count(); ++o) y[o] = Real(worst);
  for_each_reduced(attrs, in[0].shape, [&](std::int64_t o, std::int64_t i) {
    const Real x = in[0].real[i];
    if (better(x, y[o]) || is_nan(x)) y[o] = x;
  });
}

Tensors extremum_vjp(const ReduceAttrs& attrs, const Saved& saved, TensorsIn cotangents) {
  return {apply<ExtremumGrad>(attrs, {}, cotangents[0], saved.input(0), saved.output(0))};
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

Metas Max::infer(const Attrs& attrs, MetasIn in) { return infer_extremum(name, attrs, in); }
Cost Max::cost(const Attrs&, MetasIn in, MetasIn out) { return extremum_cost(in, out); }
Tensors Max::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  return extremum_vjp(attrs, saved, cotangents);
}
template <class Real>
void Max::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  reference_extremum(attrs, in, out, -kInfinity, [](Real a, Real b) { return a > b; });
}
std::vector<Sample<Max::Attrs>> Max::samples() { return reduction_samples(Fill::distinct(), false); }
LAMINA_INSTANTIATE_REFERENCE(Max);

Metas Min::infer(const Attrs& attrs, MetasIn in) { return infer_extremum(name, attrs, in); }
Cost Min::cost(const Attrs&, MetasIn in, MetasIn out) { return extremum_cost(in, out); }
Tensors Min::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  return extremum_vjp(attrs, saved, cotangents);
}
template <class Real>
void Min::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  reference_extremum(attrs, in, out, kInfinity, [](Real a, Real b) { return a < b; });
}
std::vector<Sample<Min::Attrs>> Min::samples() { return reduction_samples(Fill::distinct(), false); }
LAMINA_INSTANTIATE_REFERENCE(Min);

Metas ExtremumGrad::infer(const Attrs& attrs, MetasIn in) {
  const Metas reduced = infer_extremum(name, attrs, in.subspan(1, 1));
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    if (in[i].dtype != in[1].dtype) {
      fail<DTypeError>(name, "operand {}: {} does not match {} of operand 1", i, name_of(in[i].dtype),
                       name_of(in[1].dtype));
    }
    if (!(in[i].shape == reduced[0].shape)) {
      fail<ShapeError>(name, "operand {}: shape {} does not match {} of the reduction of {}", i, to_string(in[i].shape),
                       to_string(reduced[0].shape), to_string(in[1].shape));
    }
  }
  return {in[1]};
}

Cost ExtremumGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors ExtremumGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void ExtremumGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  std::vector<bool> found(static_cast<std::size_t>(in[2].shape.count()), false);
  for_each_reduced(attrs, in[1].shape, [&](std::int64_t o, std::int64_t i) {
    const Real x = in[1].real[i];
    const Real y = in[2].real[o];
    const bool equal = x == y;
    const bool here = (equal || (is_nan(x) && is_nan(y))) && !found[static_cast<std::size_t>(o)];
    out[0].real[i] = here ? in[0].real[o] : Real(0);
    if (here) found[static_cast<std::size_t>(o)] = true;
  });
}

std::vector<Sample<ExtremumGrad::Attrs>> ExtremumGrad::samples() {
  // Small integers: equal ones are frequent, and some outputs are met by no element.
  std::vector<Sample<Attrs>> samples = reduction_samples(Fill::index(0, 9), false);
  for (Sample<Attrs>& s : samples) {
    const Meta x{s.inputs[0].shape, DType::f32};
    const SampleOperand y{infer_reduction(name, s.attrs, {&x, 1})[0].shape, Fill::index(0, 9)};
    s.inputs = {{y.shape, Fill::normal()}, s.inputs[0], y};
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(ExtremumGrad);

}  // namespace lamina
