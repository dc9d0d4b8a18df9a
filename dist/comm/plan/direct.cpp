// Every pair of ranks that has anything to say to each other, once.
#include "lamina/dist/comm/plan/builder.hpp"

namespace lamina::comm {

void direct(const PlanRequest& q, Builder& plan) {
  const int n = q.world, r = q.rank;
  switch (q.op) {
    case Collective::reduce_scatter: {
      const Block mine = block_of(q.count, n, r);
      if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
      for (int d = 1; d < n; ++d) {
        const Block theirs = block_of(q.count, n, (r + d) % n);
        plan.send((r + d) % n, {Space::input, theirs.first}, theirs.count);
        const Place own = d == 1 ? Place{Space::input, mine.first} : Place{Space::output, 0};
        plan.reduce((r - d + n) % n, own, {Space::output, 0}, mine.count, false, d == n - 1);
      }
      return;
    }
    case Collective::all_gather:
      plan.copy({Space::input, 0}, {Space::output, r * q.count}, q.count);
      for (int d = 1; d < n; ++d) {
        const int from = (r - d + n) % n;
        plan.send((r + d) % n, {Space::input, 0}, q.count);
        plan.receive(from, {Space::output, from * q.count}, q.count);
      }
      return;
    case Collective::all_to_all:
      plan.copy({Space::input, r * q.count}, {Space::output, r * q.count}, q.count);
      for (int d = 1; d < n; ++d) {
        const int to = (r + d) % n, from = (r - d + n) % n;
        plan.send(to, {Space::input, to * q.count}, q.count);
        plan.receive(from, {Space::output, from * q.count}, q.count);
      }
      return;
    case Collective::gather:
      if (r != q.root) return plan.send(q.root, {Space::input, 0}, q.count);
      for (int from = 0; from < n; ++from) {
        const Place to{Space::output, from * q.count};
        if (from == r) {
          plan.copy({Space::input, 0}, to, q.count);
        } else {
          plan.receive(from, to, q.count);
        }
      }
      return;
    case Collective::scatter:
      if (r != q.root) return plan.receive(q.root, {Space::output, 0}, q.count);
      for (int to = 0; to < n; ++to) {
        const Place own{Space::input, to * q.count};
        if (to == r) {
          plan.copy(own, {Space::output, 0}, q.count);
        } else {
          plan.send(to, own, q.count);
        }
      }
      return;
    default: return;
  }
}

}  // namespace lamina::comm
