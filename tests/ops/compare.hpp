// How close is close: the tolerance of a record, and the element that misses it by most.
#pragma once

#include "tests/ops/problem.hpp"

namespace lamina::harness {

struct Finding {
  std::string check;    ///< "forward"
  std::string subject;  ///< the op or variant
  std::string problem;  ///< the sample and dtype
  std::string text;
};
using Findings = std::vector<Finding>;
std::string to_string(const Finding& finding);

/// Half the spacing of numbers just above 1.
double half_ulp(DType dtype);
/// Half the spacing of the smallest numbers.
double half_smallest(DType dtype);

/// The difference to the reference in units of the tolerance's ulps, per element; the largest first.
struct Distance {
  double ulps = 0;          ///< of the worst element; infinity for NaN against a number
  std::int64_t worst = -1;  ///< its row-major number
  std::int64_t beyond = 0;  ///< elements beyond the tolerance
};
/// Both NaN is no difference, and so is equal after rounding the reference to `dtype`.
Distance distance(std::span<const double> got, std::span<const double> want, DType dtype, const Tolerance& tolerance,
                  double flops_per_element);

/// Nothing when `got` is within the record's tolerance of the reference, else what is wrong with the worst element.
std::optional<std::string> compare_outputs(const Problem& problem, std::span<const Array> got, double* worst = nullptr);
/// Nothing when the bits are equal, else the first element that differs.
std::optional<std::string> compare_bits(std::span<const Array> got, std::span<const Array> want);

}  // namespace lamina::harness
