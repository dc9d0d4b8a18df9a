#include "lamina/dist/comm/plan/builder.hpp"

#include <algorithm>

namespace lamina::comm {

void Builder::LastTouch::note(std::int64_t first, std::int64_t count, std::int32_t by) {
  const std::int64_t end = first + count;
  auto it = runs_.lower_bound(first);
  if (it != runs_.begin() && std::prev(it)->second.first > first) {
    // The run before reaches into this one: it keeps its head, and its tail if that reaches beyond.
    const auto before = std::prev(it);
    const auto [old_end, old_by] = before->second;
    before->second.first = first;
    if (old_end > end) it = runs_.emplace_hint(it, end, std::pair(old_end, old_by));
  }
  while (it != runs_.end() && it->first < end) {
    const auto [old_end, old_by] = it->second;
    it = runs_.erase(it);
    if (old_end > end) {
      it = runs_.emplace_hint(it, end, std::pair(old_end, old_by));
      break;
    }
  }
  runs_[first] = {end, by};
}

std::int32_t Builder::LastTouch::latest(std::int64_t first, std::int64_t count) const {
  std::int32_t by = 0;
  auto it = runs_.upper_bound(first);
  if (it != runs_.begin()) --it;
  for (; it != runs_.end() && it->first < first + count; ++it) {
    if (it->second.first > first) by = std::max(by, it->second.second);
  }
  return by;
}

void Builder::add(const Step& whole, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += request_.segment) {
    Step step = whole;
    step.own_at += at;
    step.to_at += at;
    step.count = std::min(request_.segment, count - at);
    if (step.kind == Step::Kind::send) {
      const auto space = static_cast<std::size_t>(real(step.own));
      step.after = written_[space].latest(step.own_at, step.count);
      sent_[space].note(step.own_at, step.count, ++sends_);
    } else {
      const auto space = static_cast<std::size_t>(real(step.to));
      step.after = sent_[space].latest(step.to_at, step.count);
      written_[space].note(step.to_at, step.count, ++arrivals_);
      if (step.to == Space::scratch) plan_.scratch = std::max(plan_.scratch, step.to_at + step.count);
    }
    plan_.steps.push_back(step);
  }
}

void Builder::send(int peer, Place own, std::int64_t count) {
  Step step;
  step.kind = Step::Kind::send;
  step.peer = peer;
  step.own = own.space;
  step.own_at = own.at;
  add(step, count);
}

void Builder::receive(int peer, Place to, std::int64_t count) {
  Step step;
  step.kind = Step::Kind::receive;
  step.peer = peer;
  step.to = to.space;
  step.to_at = to.at;
  add(step, count);
}

void Builder::reduce(int peer, Place own, Place to, std::int64_t count, bool theirs_first, bool last) {
  Step step;
  step.kind = Step::Kind::reduce;
  step.peer = peer;
  step.own = own.space;
  step.own_at = own.at;
  step.to = to.space;
  step.to_at = to.at;
  step.theirs_first = theirs_first;
  step.last = last;
  add(step, count);
}

void Builder::copy(Place own, Place to, std::int64_t count) {
  if (real(own.space) == real(to.space) && own.at == to.at) return;
  Step step;
  step.kind = Step::Kind::copy;
  step.own = own.space;
  step.own_at = own.at;
  step.to = to.space;
  step.to_at = to.at;
  add(step, count);
}

void Builder::signal(int peer) {
  Step step;
  step.kind = Step::Kind::send;
  step.peer = peer;
  step.after = arrivals_;
  ++sends_;
  plan_.steps.push_back(step);
}

void Builder::await(int peer) {
  Step step;
  step.kind = Step::Kind::receive;
  step.peer = peer;
  ++arrivals_;
  plan_.steps.push_back(step);
}

Plan Builder::finish() { return std::move(plan_); }

}  // namespace lamina::comm
