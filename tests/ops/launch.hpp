// Launching one variant on operands that lie where a check wants them, past the dispatcher.
#pragma once

#include "lamina/kernels/run.hpp"
#include "lamina/kernels/table.hpp"
#include "tests/ops/problem.hpp"

namespace lamina::harness {

/// What the checks run on: three devices of one kind, made once (tests/support/devices.hpp).
struct Devices {
  std::string_view kind;
  bool partial;  ///< kernels may be missing
  Device first;  ///< on the CPU one thread, and poisoned memory
  Device second, third;
  /// One an entry of the list of kinds; the CPU first.
  static std::span<const Devices> present();
  static const Devices& cpu() { return present().front(); }
};

/// True when this machine can run code of that instruction set.
bool runs_here(Isa isa);
/// All variants of the op on a kind of device; on the CPU its reference is the last.
std::span<const Variant* const> variants_of(const OpInfo& op, const Devices& on = Devices::cpu());
inline bool is_reference(const Variant& v) { return v.name.ends_with(".reference"); }

bool supports(const Variant& variant, const Problem& problem);
/// Operands dense at the addresses given, which are the device's. Done when it returns. `executor`: instead of the
/// device's own.
void launch_at(const Variant& variant, const Problem& problem, std::span<std::byte* const> in,
               std::span<std::byte* const> out, const Device& device, Executor* executor = nullptr);
/// Into fresh outputs that start as bytes of 0xFF. Where the host's addresses are the device's, `problem.in` is handed
/// to the kernel itself.
std::vector<Array> launch(const Variant& variant, const Problem& problem, const Device& device,
                          Executor* executor = nullptr);

/// The text of the exception being handled.
std::string current_exception_text();

}  // namespace lamina::harness
