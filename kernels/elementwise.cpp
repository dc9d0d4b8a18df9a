#include "lamina/kernels/elementwise.hpp"

#include "lamina/kernels/sum/op.hpp"

namespace lamina {

namespace {

void check_floating(std::string_view op, MetasIn in) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i].dtype)) {
      fail<DTypeError>(op, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    }
    if (in[i].dtype != in[0].dtype) {
      fail<DTypeError>(op, "operand {}: {} does not match {} of operand 0", i, name_of(in[i].dtype),
                       name_of(in[0].dtype));
    }
  }
}

}  // namespace

Metas infer_elementwise(std::string_view op, MetasIn in) {
  check_floating(op, in);
  Metas out(in.first(1));
  Shape& shape = out[0].shape;
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (in[i].shape == shape) continue;
    const Shape before = shape;
    if (!broadcast_shapes(before, in[i].shape, shape)) {
      fail<ShapeError>(op, "operand {}: {} does not broadcast with {}", i, to_string(in[i].shape), to_string(before));
    }
  }
  return out;
}

Metas infer_same(std::string_view op, MetasIn in) {
  check_floating(op, in);
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (!(in[i].shape == in[0].shape)) {
      fail<ShapeError>(op, "operand {}: shape {} does not match {}", i, to_string(in[i].shape), to_string(in[0].shape));
    }
  }
  return Metas(in.first(1));
}

Cost elementwise_cost(std::int64_t flops, MetasIn in, MetasIn out) {
  return stream_cost(flops * out[0].shape.count(), in, out);
}

Tensor sum_to(Tensor cotangent, const Shape& shape) {
  if (cotangent.shape() == shape) return cotangent;
  std::vector<int> dims;
  const int lead = cotangent.shape().rank() - shape.rank();
  for (int i = 0; i < cotangent.shape().rank(); ++i) {
    if (i < lead || (shape[i - lead] == 1 && cotangent.shape()[i] != 1)) dims.push_back(i);
  }
  const Tensor summed = sum(cotangent, dims, true);
  return summed.view(shape);
}

}  // namespace lamina
