#include "lamina/kernels/copy/op.hpp"

#include "lamina/kernels/reference.hpp"

namespace lamina {

Metas Copy::infer(const Attrs& attrs, MetasIn in) { return {{in[0].shape, attrs.dtype}}; }

Cost Copy::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors Copy::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  const DType dtype = saved.input_meta(0).dtype;
  return {cotangents[0].dtype() == dtype ? cotangents[0] : cast(cotangents[0], dtype)};
}

template <class Real>
void Copy::reference(const Attrs&, In<Real> in, Out<Real> out) {
  for (std::int64_t i = 0; i < in[0].shape.count(); ++i) {
    const Real value = in[0].real != nullptr ? in[0].real[i] : Real(static_cast<double>(in[0].index[i]));
    if (out[0].real != nullptr) {
      out[0].real[i] = value;
    } else {
      out[0].index[i] = in[0].real != nullptr ? static_cast<std::int64_t>(static_cast<double>(value)) : in[0].index[i];
    }
  }
}

std::vector<Sample<Copy::Attrs>> Copy::samples() {
  std::vector<Sample<Attrs>> samples = {{"one", {DType::f32}, {{Shape{}}}},
                                        {"empty", {DType::f32}, {{{3, 0}}}},
                                        {"odd", {DType::f32}, {{{3, 7}}}},
                                        {"blocks", {DType::f32}, {{{5, 8193}}}}};
  for (const DType from : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
    for (const DType to : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
      if (from == DType::f32 && to == DType::f32) continue;
      const Fill fill = is_floating(from) ? Fill::uniform(0, 100) : Fill::index(0, 100);
      samples.push_back({fmt::format("{}_to_{}", name_of(from), name_of(to)), {to}, {{{5, 9}, fill, from}}});
    }
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Copy);

}  // namespace lamina
