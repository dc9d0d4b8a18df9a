// Problem: one sample of an op in one floating dtype, with its inputs, and what the float64 reference makes of them.
#pragma once

#include <optional>

#include "lamina/kernels/op_info.hpp"
#include "tests/ops/array.hpp"

namespace lamina::harness {

/// Outputs of a reference: `real` of floating ones, `index` of integer ones.
struct Values {
  std::vector<std::vector<double>> real;
  std::vector<std::vector<std::int64_t>> index;
};

struct Problem {
  std::string name;  ///< "odd bf16"
  const OpInfo* op;
  const void* attrs;
  std::vector<Array> in;
  Metas out;
  Cost cost;

  std::vector<Meta> in_metas() const;
  /// Reference outputs for the inputs as rounded; computed at the first call.
  const Values& expected() const;
  /// FLOPs per output element, at least 1.
  double flops_per_element() const;

 private:
  mutable std::optional<Values> expected_;
};

/// The seed of all values: 1, or the environment's LAMINA_SOAK.
std::uint64_t seed();

/// Values of one operand of a sample before rounding; a pure function of seed, op, sample and operand.
std::vector<double> sample_values(std::string_view op, std::string_view sample, std::size_t operand,
                                  const SampleOperand& spec);

/// The sample with its f32 operands in `floating`. Nothing when the op's shape rule refuses, or when there is no f32
/// operand to change.
std::optional<Problem> make_problem(const OpInfo& op, const OpInfo::Case& sample, DType floating);
/// Given inputs. Throws what infer throws.
Problem make_problem(const OpInfo& op, std::string name, const void* attrs, std::vector<Array> in);

/// Every sample in every floating dtype that its shape rule takes.
std::vector<Problem> problems_of(const OpInfo& op);

/// The reference, on exact values. Inputs lie between bands of NaN (integers: -1), outputs start as NaN (integers:
/// the smallest), so that what it reads beside its operands or does not write shows.
Values evaluate(const OpInfo& op, const void* attrs, std::span<const Meta> in_metas,
                std::span<const std::vector<double>> real, std::span<const std::vector<std::int64_t>> index,
                std::span<const Meta> out_metas);

}  // namespace lamina::harness
