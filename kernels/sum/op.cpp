#include "lamina/kernels/sum/op.hpp"

#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Sum::infer(const Attrs& attrs, MetasIn in) { return infer_reduction(name, attrs, in); }

Cost Sum::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(in[0].shape.count(), in, out); }

Tensors Sum::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs) {
  const Shape& shape = saved.input_meta(0).shape;
  return {cotangents[0].view(kept_shape(attrs, shape)).expand(shape)};
}

template <class Real>
void Sum::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  for (std::int64_t o = 0; o < out[0].shape.count(); ++o) out[0].real[o] = Real(0);
  for_each_reduced(attrs, in[0].shape, [&](std::int64_t o, std::int64_t i) { out[0].real[o] += in[0].real[i]; });
}

// Of both signs, but their sum is not near 0: its error is one of the sum of |x|.
static constexpr Fill kSummed = Fill::uniform(-1, 2);

std::vector<Sample<Sum::Attrs>> Sum::samples() { return reduction_samples(kSummed, true); }

LAMINA_INSTANTIATE_REFERENCE(Sum);

}  // namespace lamina
