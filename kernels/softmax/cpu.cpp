#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/softmax/op.hpp"

namespace lamina {

namespace {

// The dim seen as the middle one of three.
struct Rows {
  std::int64_t outer = 1;
  std::int64_t length;
  std::int64_t inner = 1;
};
Rows rows_along(const Shape& shape, int dim) {
  Rows rows{.length = shape[dim]};
  for (int i = 0; i < dim; ++i) rows.outer *= shape[i];
  for (int i = dim + 1; i < shape.rank(); ++i) rows.inner *= shape[i];
  return rows;
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/softmax/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Softmax>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(Softmax, "softmax", softmax_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<SoftmaxGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(SoftmaxGrad, "softmax_grad", softmax_grad_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<LogSoftmax>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(LogSoftmax, "log_softmax", log_softmax_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<LogSoftmaxGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(LogSoftmaxGrad, "log_softmax_grad", log_softmax_grad_in)};
  return table;
}

}  // namespace lamina
