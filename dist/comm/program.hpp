// Program: a plan, and what PlanRunner would otherwise count again for each work that runs it. Immutable; thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/dist/comm/plan.hpp"

namespace lamina::comm {

struct Program {
  explicit Program(Plan plan_);
  Plan plan;
  std::vector<std::int32_t> sends, arrivals;            // indices of steps
  std::vector<std::int32_t> send_peers, arrival_peers;  // each peer once
  std::vector<std::int32_t> sends_to, arrivals_from;    // how many, beside the above
};

}  // namespace lamina::comm
