// Launching one variant on operands that lie where a check wants them, past the dispatcher.
#pragma once

#include "lamina/kernels/run.hpp"
#include "lamina/kernels/table.hpp"
#include "tests/ops/problem.hpp"

namespace lamina::harness {

/// Everything the checks run on; made once.
struct Devices {
  Device one;    ///< one thread, poisoned memory
  Device two;    ///< two threads
  Device seven;  ///< seven threads
  static const Devices& get();
};

/// True when this machine can run code of that instruction set.
bool runs_here(Isa isa);
/// All variants of the op on the CPU, its reference last.
std::span<const Variant* const> variants_of(const OpInfo& op);
inline bool is_reference(const Variant& v) { return v.name.ends_with(".reference"); }

bool supports(const Variant& variant, const Problem& problem);
/// Operands dense at the addresses given.
void launch_at(const Variant& variant, const Problem& problem, std::span<std::byte* const> in,
               std::span<std::byte* const> out, Executor& executor);
/// Into fresh outputs that start as bytes of `fill`. `problem.in` is handed to the kernel itself.
std::vector<Array> launch(const Variant& variant, const Problem& problem, Executor& executor, int fill = 0xFF);
Executor& executor_of(const Device& device);

/// The text of the exception being handled.
std::string current_exception_text();

}  // namespace lamina::harness
