#include "lamina/kernels/gelu/op.hpp"

#include <cmath>
#include <numbers>

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Gelu::infer(const Attrs&, MetasIn in) { return infer_elementwise(name, in); }

// Tanh form: x^3 2, the sum 2, the scale 1, tanh 1, 1 + t, and two products. Erf form: scale, erf, sum, two products.
Cost Gelu::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return elementwise_cost(attrs.tanh_form ? 9 : 5, in, out);
}

Tensors Gelu::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  return {apply<GeluGrad>(attrs, {}, cotangents[0], saved.input(0))};
}

template <class Real>
void Gelu::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::erf, std::tanh;
  reference_unary(in, out, [&](Real x) {
    if (attrs.tanh_form) {
      const Real cube = x * x * x;
      const Real u = Real(std::sqrt(2 / std::numbers::pi)) * (x + Real(0.044715) * cube);
      return Real(0.5) * x * (Real(1) + tanh(u));
    }
    return Real(0.5) * x * (Real(1) + erf(Real(std::numbers::sqrt2 / 2) * x));
  });
}

namespace {

// Both derivatives are 0 near -0.752.
constexpr Fill kNear = Fill::uniform(-4, 4).away_from(-0.752, 0.3);
constexpr Fill kFar = Fill::uniform(-13, 13);

template <class F>
std::vector<Sample<Gelu::Attrs>> of_both_forms(F samples) {
  std::vector<Sample<Gelu::Attrs>> all = samples(Gelu::Attrs{.tanh_form = true});
  for (Sample<Gelu::Attrs>& s : samples(Gelu::Attrs{.tanh_form = false})) {
    s.name = "erf_" + s.name;
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace

std::vector<Sample<Gelu::Attrs>> Gelu::samples() {
  return of_both_forms([](const Attrs& attrs) {
    auto samples = unary_samples(attrs, kNear);
    samples.push_back({"tails", attrs, {{{257}, kFar}}});
    return samples;
  });
}

LAMINA_INSTANTIATE_REFERENCE(Gelu);

Metas GeluGrad::infer(const Attrs&, MetasIn in) { return infer_same(name, in); }

Cost GeluGrad::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return elementwise_cost(attrs.tanh_form ? 19 : 11, in, out);
}

Tensors GeluGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void GeluGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  using std::erf, std::exp, std::tanh;
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) {
    const Real dy = in[0].real[i];
    const Real x = in[1].real[i];
    if (attrs.tanh_form) {
      const Real scale(std::sqrt(2 / std::numbers::pi));
      const Real t = tanh(scale * (x + Real(0.044715) * (x * x * x)));
      const Real du = scale * (Real(1) + Real(3 * 0.044715) * x * x);
      out[0].real[i] = dy * (Real(0.5) * (Real(1) + t) + Real(0.5) * x * (Real(1) - t * t) * du);
    } else {
      const Real cdf = Real(0.5) * (Real(1) + erf(x * Real(std::numbers::sqrt2 / 2)));
      const Real pdf = exp(Real(-0.5) * x * x) * Real(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
      out[0].real[i] = dy * (cdf + x * pdf);
    }
  }
}

std::vector<Sample<GeluGrad::Attrs>> GeluGrad::samples() {
  return of_both_forms([](const Attrs& attrs) {
    auto samples = same_shape_samples(attrs, {Fill::normal(), kNear});
    samples.push_back({"tails", attrs, {{{257}}, {{257}, kFar}}});
    return samples;
  });
}

LAMINA_INSTANTIATE_REFERENCE(GeluGrad);

}  // namespace lamina
