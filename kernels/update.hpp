// What the records of parameter updates share.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

/// Checks `sets` sets of `count` operands each: floating, and of equal shape and dtype across the sets. Throws
/// ValueError for a count below 1 or another number of operands, ShapeError, DTypeError.
void check_update(std::string_view op, int count, int sets, MetasIn in);

/// The metas of the sets numbered (set 0 holds the values).
Metas update_outputs(int count, std::initializer_list<int> sets, MetasIn in);

/// Sample operands: every shape once a set, filled by `fills`.
std::vector<SampleOperand> update_operands(const std::vector<Shape>& shapes, const std::vector<Fill>& fills);

}  // namespace lamina
