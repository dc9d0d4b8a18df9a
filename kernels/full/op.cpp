#include "lamina/kernels/full/op.hpp"

#include <cmath>
#include <limits>

#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

// int64's largest value is no double: the first one beyond it is.
template <class T>
bool holds(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value == 0 || value == 1;
  } else if constexpr (std::is_integral_v<T>) {
    constexpr T half = std::numeric_limits<T>::max() / 2 + 1;
    constexpr double end = 2.0 * half;
    return value == std::trunc(value) && value >= static_cast<double>(std::numeric_limits<T>::min()) && value < end;
  } else {
    return true;
  }
}

}  // namespace

Metas Full::infer(const Attrs& attrs, MetasIn in) {
  if (!in.empty()) fail<ShapeError>(name, "{} operands given, it takes none", in.size());
  if (!visit(attrs.dtype, [&]<class T>() { return holds<T>(attrs.value); })) {
    fail<ValueError>(name, "{} is not a value of {}", attrs.value, name_of(attrs.dtype));
  }
  return {{attrs.shape, attrs.dtype}};
}

Cost Full::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, out); }

Tensors Full::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { return {}; }

template <class Real>
void Full::reference(const Attrs& attrs, In<Real>, Out<Real> out) {
  for (std::int64_t i = 0; i < out[0].shape.count(); ++i) {
    if (out[0].real != nullptr) {
      out[0].real[i] = Real(attrs.value);
    } else {
      out[0].index[i] = static_cast<std::int64_t>(attrs.value);
    }
  }
}

std::vector<Sample<Full::Attrs>> Full::samples() {
  std::vector<Sample<Attrs>> samples = {{"empty", {{0, 3}, DType::f32, 1}, {}},
                                        {"zero", {{2, 3}, DType::f32, 0}, {}},
                                        {"blocks", {{3, 20011}, DType::f32, -0.1}, {}}};
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    samples.push_back({fmt::format("one_{}", name_of(dtype)), {Shape{}, dtype, 1.7}, {}});
    samples.push_back({fmt::format("odd_{}", name_of(dtype)), {{3, 7}, dtype, -1e-3}, {}});
  }
  for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::boolean}) {
    samples.push_back({fmt::format("odd_{}", name_of(dtype)), {{3, 7}, dtype, 1}, {}});
  }
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Full);

}  // namespace lamina
