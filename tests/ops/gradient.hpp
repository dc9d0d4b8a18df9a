// One sample set up for differentiation: its tensors, what the record keeps, and the call of its vjp.
#pragma once

#include "tests/ops/checks.hpp"

namespace lamina::harness {

/// Where gradients flow: the outputs whose cotangents a vjp takes, and the operands that then have gradients.
struct Reach {
  std::uint64_t outputs = 0, operands = 0;
  /// What is not in order: an operand without any gradient; an output whose cotangent is refused without saying
  /// "output 1 ..." in a TapeError, or only for some operands.
  std::vector<std::string> faults;
};

class Backward {
 public:
  /// Runs the op forward on the problem's inputs. `strided`: inputs and cotangents lie transposed in memory.
  Backward(const OpInfo& op, const Device& device, const Problem& problem, bool strided = false);

  /// Operands and outputs that have floating elements.
  std::uint64_t floating_inputs() const;
  std::vector<std::size_t> floating_outputs() const;

  /// Random cotangents of the outputs in `which` (bit o), undefined ones for the others.
  std::vector<Tensor> cotangents(std::uint64_t which) const;
  /// The values of the cotangent of one output, before rounding to its dtype.
  static std::vector<double> cotangent_values(const OpInfo& op, std::size_t output, std::int64_t count);

  /// Calls vjp with nothing but what a tape keeps when only those gradients may be wanted. Throws what vjp throws, and
  /// Mismatch when there are not as many gradients as operands, or one that is not needed is defined.
  /// What is in `spoiled` has other elements: NaN, or for integers its own in reverse order, or 0.
  Tensors vjp(std::span<const Tensor> cotangents, std::uint64_t needs, Keep spoiled = {}) const;
  /// What the record keeps for these gradients of this problem.
  Keep kept(std::uint64_t needs) const;
  /// By trying every floating output and operand alone.
  Reach reach() const;

 private:
  const OpInfo& op_;
  const Problem& problem_;
  const Device& device_;
  bool strided_;
  std::vector<Tensor> in_;
  Tensors out_;
};

}  // namespace lamina::harness
