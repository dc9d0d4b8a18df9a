#include "lamina/kernels/mean/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Mean::infer(const Attrs& attrs, MetasIn in) {
  Metas out = infer_reduction(name, attrs, in);
  check_reduces_something(name, attrs, in[0].shape);
  return out;
}

Cost Mean::cost(const Attrs&, MetasIn in, MetasIn out) {
  return stream_cost(in[0].shape.count() + out[0].shape.count(), in, out);
}

Tensors Mean::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  const Shape& shape = saved.input_meta(0).shape;
  return {apply<MeanGrad>({shape}, {}, cotangents[0].view(kept_shape(attrs, shape)))};
}

template <class Real>
void Mean::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t means = out[0].shape.count();
  for (std::int64_t o = 0; o < means; ++o) out[0].real[o] = Real(0);
  for_each_reduced(attrs, in[0].shape, [&](std::int64_t o, std::int64_t i) { out[0].real[o] += in[0].real[i]; });
  const Real count(static_cast<double>(reduced_count(attrs, in[0].shape)));
  for (std::int64_t o = 0; o < means; ++o) out[0].real[o] /= count;
}

std::vector<Sample<Mean::Attrs>> Mean::samples() { return reduction_samples(Fill::uniform(-1, 2), false); }

LAMINA_INSTANTIATE_REFERENCE(Mean);

Metas MeanGrad::infer(const Attrs& attrs, MetasIn in) {
  infer_same(name, in);
  const Shape& shape = in[0].shape;
  bool fits = shape.rank() == attrs.shape.rank();
  for (int i = 0; fits && i < shape.rank(); ++i) fits = shape[i] == attrs.shape[i] || shape[i] == 1;
  if (!fits) {
    fail<ShapeError>(name, "operand 0: {} is not {} with reduced dims of extent 1", to_string(shape),
                     to_string(attrs.shape));
  }
  return {{attrs.shape, in[0].dtype}};
}

Cost MeanGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return elementwise_cost(1, in, out); }

Tensors MeanGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void MeanGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t repeats = attrs.shape.count() / std::max<std::int64_t>(1, in[0].shape.count());
  for (std::int64_t n = 0; n < out[0].shape.count(); ++n) {
    out[0].real[n] = in[0].real[broadcast_index(n, attrs.shape, in[0].shape)] / Real(static_cast<double>(repeats));
  }
}

std::vector<Sample<MeanGrad::Attrs>> MeanGrad::samples() {
  return {{"scalar", {Shape{}}, {{Shape{}}}},
          {"none", {{3, 5}}, {{{3, 5}}}},
          {"inner", {{5, 37}}, {{{5, 1}}}},
          {"outer", {{41, 9}}, {{{1, 9}}}},
          {"channel", {{3, 4, 5, 6}}, {{{1, 4, 1, 1}}}},
          {"all", {{40961}}, {{{1}}}},
          {"empty", {{0, 4}}, {{{0, 1}}}}};
}

LAMINA_INSTANTIATE_REFERENCE(MeanGrad);

}  // namespace lamina
