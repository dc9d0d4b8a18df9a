// The checks. Each returns what it found wrong; nothing found is a pass. They take the op and the variant as values of
// the table's own types, so that the self-test can hand them broken ones. A variant is one of the devices it is run on.
#pragma once

#include "tests/ops/compare.hpp"
#include "tests/ops/launch.hpp"

namespace lamina::harness {

using Problems = std::span<const Problem>;
using Variants = std::span<const Variant* const>;

/// Every problem the variant supports against the float64 reference on the same inputs; at least one must be supported.
/// `worst` gets the largest distance met, in ulps.
Findings check_forward(const OpInfo& op, const Variant& variant, Problems problems, const Devices& on = Devices::cpu(),
                       double* worst = nullptr);
/// The reference itself: writes all of its outputs, reads nothing else, makes no NaN of finite inputs.
Findings check_reference(const OpInfo& op, Problems problems);
/// Reads and writes outside the operands, elements left unwritten, inputs written.
Findings check_guard(const OpInfo& op, const Variant& variant, Problems problems, const Devices& on = Devices::cpu());
/// Transposed, stepped, shifted and expanded operands give the bits of dense ones.
Findings check_layout(const OpInfo& op, const Variant& variant, Problems problems, const Devices& on = Devices::cpu());
/// The devices, and on the host an executor that runs blocks backwards, give the same bits.
Findings check_threads(const OpInfo& op, const Variant& variant, Problems problems, const Devices& on = Devices::cpu());
/// `runs` runs give the same bits.
Findings check_determinism(const OpInfo& op, const Variant& variant, Problems problems, int runs,
                           const Devices& on = Devices::cpu());
/// Declared FLOPs and bytes against counted ones.
Findings check_cost(const OpInfo& op, Problems problems);
/// What the device counts of a run against what the record declares.
Findings check_counts(const OpInfo& op, Problems problems, const Devices& on = Devices::cpu());
/// vjp against central differences of the reference; see gradient.cpp.
Findings check_gradient(const OpInfo& op, const Devices& on = Devices::cpu());
/// The same for one problem; all its floating inputs f64: against differences, else against float64. Adds to `compared`
/// the elements differentiated by.
Findings check_gradient_of(const OpInfo& op, const Problem& problem, const Devices& on,
                           std::size_t* compared = nullptr);
/// False when the record says that nobody may take its gradient.
bool has_gradient(const OpInfo& op);
/// Samples that leave a check nothing to work on.
Findings check_samples(const OpInfo& op, Problems problems);
/// The number of outputs, the tolerance, the variants' names, and that none of them is missing.
Findings check_record(const OpInfo& op, Problems problems, Variants variants);
/// Tensors kept for a gradient that does not read them.
Findings check_saves(const OpInfo& op);
/// run_into refuses outputs that share storage with operands, and leaves those alone.
Findings check_alias(const OpInfo& op, Problems problems, const Devices& on = Devices::cpu());
/// Extents of 0: no crash, right shapes, zero gradients.
Findings check_empty(const OpInfo& op, Variants variants, const Devices& on = Devices::cpu());
/// Operands that do not fit: a typed error or a result, never a stray access.
Findings check_errors(const OpInfo& op, Variants variants, const Devices& on = Devices::cpu());

}  // namespace lamina::harness
