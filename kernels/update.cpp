#include "lamina/kernels/update.hpp"

namespace lamina {

void check_update(std::string_view op, int count, int sets, MetasIn in) {
  if (count < 1 || in.size() != static_cast<std::size_t>(count) * static_cast<std::size_t>(sets)) {
    fail<ValueError>(op, "{} operands for {} sets of {} tensors", in.size(), sets, count);
  }
  const auto n = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Meta& value = in[i % n];
    if (!is_floating(in[i].dtype) || in[i].dtype != value.dtype) {
      fail<DTypeError>(op, "operand {}: {} does not match {}, or is not floating", i, name_of(in[i].dtype),
                       name_of(value.dtype));
    }
    if (!(in[i].shape == value.shape)) {
      fail<ShapeError>(op, "operand {}: shape {} does not match {}", i, to_string(in[i].shape), to_string(value.shape));
    }
  }
}

Metas update_outputs(int count, std::initializer_list<int> sets, MetasIn in) {
  Metas out;
  const auto n = static_cast<std::size_t>(count);
  for (const int set : sets) {
    for (const Meta& m : in.subspan(static_cast<std::size_t>(set) * n, n)) out.push_back(m);
  }
  return out;
}

std::vector<SampleOperand> update_operands(const std::vector<Shape>& shapes, const std::vector<Fill>& fills) {
  std::vector<SampleOperand> operands;
  for (const Fill& fill : fills) {
    for (const Shape& shape : shapes) operands.push_back({shape, fill});
  }
  return operands;
}

}  // namespace lamina
