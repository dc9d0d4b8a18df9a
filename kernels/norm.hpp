// Checks that the records of normalisations share.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

/// Throws DTypeError unless the operands before number `statistics` are of one floating dtype, and the others of the
/// one its sums are accumulated in (f32 for bf16 and f16).
void check_norm_operands(std::string_view op, MetasIn in, std::size_t statistics);
/// Throws ShapeError unless operand `i` has the shape.
void check_shape(std::string_view op, MetasIn in, std::size_t i, const Shape& shape);
/// Throws ValueError unless epsilon > 0 and finite.
void check_epsilon(std::string_view op, double epsilon);
/// Statistics carry no gradient. Throws TapeError when an output but the first has a cotangent.
void check_only_first_cotangent(std::string_view op, TensorsIn cotangents);
/// What one kernel made for all operands, without the gradients that nobody wants.
Tensors only_needed(Tensors gradients, Needs needs);

}  // namespace lamina
