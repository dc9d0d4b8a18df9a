#include "lamina/kernels/norm.hpp"

#include <cmath>

namespace lamina {

void check_norm_operands(std::string_view op, MetasIn in, std::size_t statistics) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!is_floating(in[i].dtype)) {
      fail<DTypeError>(op, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    }
    const DType needed = i < statistics ? in[0].dtype : accumulator_of(in[0].dtype);
    if (in[i].dtype != needed) {
      fail<DTypeError>(op, "operand {}: {} where {} is needed beside {} of operand 0", i, name_of(in[i].dtype),
                       name_of(needed), name_of(in[0].dtype));
    }
  }
}

void check_shape(std::string_view op, MetasIn in, std::size_t i, const Shape& shape) {
  if (!(in[i].shape == shape)) {
    fail<ShapeError>(op, "operand {}: shape {} where {} is needed", i, to_string(in[i].shape), to_string(shape));
  }
}

void check_epsilon(std::string_view op, double epsilon) {
  if (!(epsilon > 0) || !std::isfinite(epsilon)) fail<ValueError>(op, "epsilon {} is not positive", epsilon);
}

void check_only_first_cotangent(std::string_view op, TensorsIn cotangents) {
  for (std::size_t i = 1; i < cotangents.size(); ++i) {
    if (cotangents[i].defined()) {
      fail<TapeError>(op, "output {} is a statistic: a gradient through it is not supported", i);
    }
  }
}

Tensors only_needed(Tensors gradients, Needs needs) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!needs[i]) gradients[i] = Tensor();
  }
  return gradients;
}

}  // namespace lamina
