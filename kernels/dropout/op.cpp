#include "lamina/kernels/dropout/op.hpp"

#include <limits>

#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Dropout::infer(const Attrs& attrs, MetasIn in) {
  if (!(attrs.rate >= 0 && attrs.rate < 1)) fail<ValueError>(name, "rate {} is outside [0, 1)", attrs.rate);
  Metas out = infer_elementwise(name, in);
  if (in[0].shape.rank() == 0) fail<ShapeError>(name, "operand 0: a scalar has no dim of examples");
  if (attrs.first_example < 0 || attrs.first_example > std::numeric_limits<std::int64_t>::max() - in[0].shape[0]) {
    fail<ValueError>(name, "first example {} with {} examples is outside the ids 0 .. 2^63 - 1", attrs.first_example,
                     in[0].shape[0]);
  }
  return out;
}

// The products with 1 / (1 - rate), dropped or not. Drawing the mask is integer work and not counted.
Cost Dropout::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors Dropout::vjp(const Attrs& attrs, const Saved&, TensorsIn cotangents, Needs) {
  return {dropout(cotangents[0], attrs)};
}

template <class Real>
void Dropout::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t examples = in[0].shape[0];
  const std::int64_t elements = examples == 0 ? 0 : in[0].shape.count() / examples;
  for (std::int64_t n = 0; n < examples; ++n) {
    for (std::int64_t e = 0; e < elements; ++e) {
      const std::int64_t i = n * elements + e;
      const Real scaled = in[0].real[i] * Real(1 / (1 - attrs.rate));
      const float u =
          attrs.rng.uniform(static_cast<std::uint64_t>(attrs.first_example + n), static_cast<std::uint64_t>(e));
      out[0].real[i] = static_cast<double>(u) >= attrs.rate ? scaled : Real(0);
    }
  }
}

std::vector<Sample<Dropout::Attrs>> Dropout::samples() {
  const Rng rng(7, 3, 11);
  const std::int64_t word = std::int64_t{1} << 32;  // where the id's upper half begins to count
  return {{"one", {0.5, rng, 5}, {{{1}}}},
          {"many_of_one", {0.5, rng, word - 40}, {{{83}}}},
          {"empty", {0.5, rng, 0}, {{{0, 3}}}},
          {"empty_examples", {0.5, rng, 0}, {{{3, 0}}}},
          {"rate_0", {0, rng, 0}, {{{3, 7}}}},
          {"rate_tiny", {1e-9, rng, 0}, {{{3, 7}}}},
          {"rate_high", {0.9999, rng, 0}, {{{9, 41}}}},
          {"two_quads", {0.3, rng, 2}, {{{11, 8}}}},
          {"odd", {0.1, rng, word - 2}, {{{5, 13}}}},
          {"rank4", {0.25, rng, 0}, {{{2, 3, 5, 4}}}},
          {"blocks", {0.1, rng, 1}, {{{2, 20483}}}}};
}

LAMINA_INSTANTIATE_REFERENCE(Dropout);

}  // namespace lamina
