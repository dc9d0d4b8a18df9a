#include "lamina/dist/comm/work.hpp"

#include "lamina/dist/comm/plan_runner.hpp"

namespace lamina::comm {

void Work::wait() {
  if (state_) runner_->wait(*state_);
}

bool Work::done() const { return !state_ || runner_->done(*state_); }

WorkTimes Work::times() const {
  if (!state_) fail<ValueError>("work", "there is none");
  return runner_->times(*state_);
}

}  // namespace lamina::comm
