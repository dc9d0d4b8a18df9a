#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/cross_entropy/op.hpp"

namespace lamina {

namespace {

std::int64_t count_labels(std::string_view op, const Operand& labels, std::int64_t classes, std::int64_t ignore_index) {
  return check_labels(op, {labels.as<const std::int64_t>(), static_cast<std::size_t>(labels.count())}, classes,
                      ignore_index);
}

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/cross_entropy/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<CrossEntropy>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(CrossEntropy, "cross_entropy", cross_entropy_in)};
  return table;
}
template <>
std::span<const Variant> cpu_variants<CrossEntropyGrad>() {
  static constexpr Variant table[] = {
      LAMINA_REDUCE_VARIANTS(CrossEntropyGrad, "cross_entropy_grad", cross_entropy_grad_in)};
  return table;
}

}  // namespace lamina
