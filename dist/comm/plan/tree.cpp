// Binary trees and a chain.
#include "lamina/dist/comm/plan/builder.hpp"

namespace lamina::comm {

namespace {

// From the root down to everybody.
void spread(const PlanRequest& q, Builder& plan) {
  const int n = q.world, at = (q.rank - q.root + n) % n;
  const auto rank = [&](int place) { return (place + q.root) % n; };
  if (at > 0) plan.receive(rank((at - 1) / 2), {Space::output, 0}, q.count);
  for (const int child : {2 * at + 1, 2 * at + 2}) {
    if (child < n) plan.send(rank(child), {Space::output, 0}, q.count);
  }
}

}  // namespace

void tree(const PlanRequest& q, Builder& plan) {
  if (q.op == Collective::broadcast) return spread(q, plan);
  const int n = q.world, r = q.rank;
  if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
  Place sum{Space::input, 0};
  for (const int child : {2 * r + 1, 2 * r + 2}) {
    if (child >= n) continue;
    const bool final_one = r == 0 && (child == 2 || n == 2);
    plan.reduce(child, sum, {Space::output, 0}, q.count, false, final_one);
    sum = {Space::output, 0};
  }
  if (r > 0) plan.send((r - 1) / 2, sum, q.count);
  PlanRequest down = q;
  down.root = 0;
  spread(down, plan);
}

void rank_order(const PlanRequest& q, Builder& plan) {
  const int n = q.world, r = q.rank;
  if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
  if (r > 0) plan.reduce(r - 1, {Space::input, 0}, {Space::output, 0}, q.count, true, r == n - 1);
  if (r < n - 1) {
    plan.send(r + 1, {r > 0 ? Space::output : Space::input, 0}, q.count);
    plan.receive(r + 1, {Space::output, 0}, q.count);
  }
  if (r > 0) plan.send(r - 1, {Space::output, 0}, q.count);
}

}  // namespace lamina::comm
