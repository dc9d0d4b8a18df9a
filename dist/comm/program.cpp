#include "lamina/dist/comm/program.hpp"

#include <algorithm>

namespace lamina::comm {

Program::Program(Plan plan_) : plan(std::move(plan_)) {
  auto add = [](std::vector<std::int32_t>& peers, std::vector<std::int32_t>& counts, int peer) {
    const auto it = std::find(peers.begin(), peers.end(), peer);
    if (it == peers.end()) {
      peers.push_back(peer);
      counts.push_back(1);
    } else {
      ++counts[static_cast<std::size_t>(it - peers.begin())];
    }
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const auto index = static_cast<std::int32_t>(i);
    if (step.kind == Step::Kind::send) {
      sends.push_back(index);
      add(send_peers, sends_to, step.peer);
    } else {
      arrivals.push_back(index);
      if (step.kind != Step::Kind::copy) add(arrival_peers, arrivals_from, step.peer);
    }
  }
}

}  // namespace lamina::comm
