// Moving elements between strided places, whatever their dtype: what copies, permutations, slices and paddings are.
#pragma once

#include "lamina/core/executor.hpp"
#include "lamina/core/shape.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

/// A place in memory: the first element, and the strides in elements of the dims of a shape given beside it.
template <class Byte>
struct Place {
  Byte* data;
  Strides strides;
};

/// Moves the elements of `shape`, each of `size` bytes (1, 2, 4 or 8). No two indices may share a target.
void move_elements(const Shape& shape, std::size_t size, Place<const std::byte> from, Place<std::byte> to,
                   Executor& executor);

/// Sets every element of a dense operand to `value`, converted to its dtype.
void fill_elements(const Operand& out, double value, Executor& executor);

}  // namespace lamina
