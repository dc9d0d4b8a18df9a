// Tensors with the values of an array and a layout that is not dense at the start of its storage.
#pragma once

#include "tests/ops/array.hpp"

namespace lamina::harness {

enum class Arrangement { transposed, reversed, stepped, shifted };
inline constexpr Arrangement kArrangements[] = {Arrangement::transposed, Arrangement::reversed, Arrangement::stepped,
                                                Arrangement::shifted};
std::string_view name_of(Arrangement arrangement);

/// transposed: the last two dims swapped in memory. reversed: all dims. stepped: every third element of each dim, the
/// others NaN. shifted: dense, behind 1 to 7 elements of NaN.
Tensor arrange(const Device& device, const Array& array, Arrangement arrangement);

}  // namespace lamina::harness
