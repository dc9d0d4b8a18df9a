#include "lamina/nn/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lamina/core/error.hpp"
#include "lamina/core/options.hpp"

namespace lamina::nn {

double LrSchedule::at(std::int64_t step) const {
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const auto span = static_cast<double>(std::max<std::int64_t>(total - warmup, 1));
  const double progress = std::clamp(static_cast<double>(step - warmup) / span, 0.0, 1.0);
  switch (kind) {
    case Kind::constant: return base;
    case Kind::linear: return base * (floor + (1 - floor) * (1 - progress));
    case Kind::cosine: return base * (floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    case Kind::step: break;
  }
  double rate = base;
  for (const double m : milestones) {
    if (static_cast<double>(step) >= m * static_cast<double>(total)) rate *= gamma;
  }
  return rate;
}

namespace {

constexpr std::string_view kSchedules[] = {"constant", "linear", "cosine", "step"};

// What the options say; a name that is not known is the caller's to refuse.
LrSchedule read_schedule(NamedOptions& options, double base, std::int64_t total) {
  LrSchedule schedule;
  schedule.base = base;
  schedule.total = total;
  const double warmup = options.number("warmup", 0, 0, 1e15);
  schedule.warmup = warmup < 1 ? std::llround(warmup * static_cast<double>(total)) : std::llround(warmup);
  if (options.name() == "constant") {
    schedule.kind = LrSchedule::Kind::constant;
  } else if (options.name() == "linear" || options.name() == "cosine") {
    schedule.kind = options.name() == "linear" ? LrSchedule::Kind::linear : LrSchedule::Kind::cosine;
    schedule.floor = options.number("floor", 0, 0, 1);
  } else {
    schedule.kind = LrSchedule::Kind::step;
    schedule.gamma = options.number("gamma", 0.1, 0, 1);
    const std::int64_t falls = options.integer("falls", 2, 0, 100);
    for (std::int64_t i = 1; i <= falls; ++i) {
      schedule.milestones.push_back(static_cast<double>(i) / static_cast<double>(falls + 1));
    }
  }
  return schedule;
}

}  // namespace

LrSchedule parse_lr_schedule(const std::string& text, double base, std::int64_t total) {
  NamedOptions options("lr schedule", text);
  if (std::ranges::find(kSchedules, options.name()) == std::end(kSchedules)) {
    fail<ValueError>("lr schedule", "unknown name '{}'; known: {}", options.name(), fmt::join(kSchedules, ", "));
  }
  LrSchedule schedule = read_schedule(options, base, total);
  options.finish();
  return schedule;
}

std::vector<std::string> lr_schedules() {
  std::vector<std::string> all;
  for (const std::string_view name : kSchedules) {
    NamedOptions options("lr schedule", name);
    read_schedule(options, 1, 1);
    all.push_back(fmt::format("{}:{}", name, options.defaults()));
  }
  return all;
}

}  // namespace lamina::nn
