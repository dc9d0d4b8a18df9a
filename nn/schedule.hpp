// Learning-rate schedules: pure functions of the step, so that a resumed run continues exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lamina::nn {

struct LrSchedule {
  enum class Kind : std::uint8_t { constant, linear, cosine, step } kind = Kind::constant;
  double base = 0.1;
  std::int64_t warmup = 0;         ///< steps of linear rise: step s < warmup has base * (s + 1) / warmup
  std::int64_t total = 0;          ///< steps of the run; linear and cosine reach `floor` at it
  double floor = 0;                ///< rate at the end, as a share of base
  std::vector<double> milestones;  ///< step: shares of `total` after which the rate falls by `gamma`
  double gamma = 0.1;

  /// The rate of step `step` (0-based).
  double at(std::int64_t step) const;
};

/// "constant", "linear", "cosine", "step", each with options: "cosine:warmup=100,floor=0.01". Warm-up is in steps, or
/// a share of the run when below 1. Throws ValueError naming the known schedules and options.
LrSchedule parse_lr_schedule(const std::string& text, double base, std::int64_t total);

/// Each schedule with its options' defaults, "cosine:warmup=0,floor=0": for help texts.
std::vector<std::string> lr_schedules();

}  // namespace lamina::nn
