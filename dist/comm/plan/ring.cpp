// Around a ring: every rank sends to the next and hears from the one before. As few bytes as can be, in n - 1 rounds
// each way. (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009.)
#include "lamina/dist/comm/plan/builder.hpp"

namespace lamina::comm {

void ring(const PlanRequest& q, Builder& plan) {
  const int n = q.world, r = q.rank;
  const auto rank = [n](int x) { return (x % n + n) % n; };
  const int next = rank(r + 1), before = rank(r - 1);
  const auto block = [&](int index) { return block_of(q.count, n, rank(index)); };

  switch (q.op) {
    case Collective::all_reduce: {
      if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
      // Round s: the partial sum of block r - s goes on, that of block r - s - 1 gets this rank's part.
      for (int s = 0; s < n - 1; ++s) {
        const Block out = block(r - s), in = block(r - s - 1);
        plan.send(next, {s == 0 ? Space::input : Space::output, out.first}, out.count);
        plan.reduce(before, {Space::input, in.first}, {Space::output, in.first}, in.count, true, s == n - 2);
      }
      for (int s = 0; s < n - 1; ++s) {
        const Block out = block(r + 1 - s), in = block(r - s);
        plan.send(next, {Space::output, out.first}, out.count);
        plan.receive(before, {Space::output, in.first}, in.count);
      }
      return;
    }
    case Collective::reduce_scatter: {
      if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
      // As above, one block on, so that this rank ends with its own. Partial sums alternate between two places.
      const std::int64_t largest = block_of(q.count, n, 0).count;
      Place partial;
      for (int s = 0; s < n - 1; ++s) {
        const Block out = block(r - s - 1), in = block(r - s - 2);
        plan.send(next, s == 0 ? Place{Space::input, out.first} : partial, out.count);
        partial = s == n - 2 ? Place{Space::output, 0} : Place{Space::scratch, s % 2 * largest};
        plan.reduce(before, {Space::input, in.first}, partial, in.count, true, s == n - 2);
      }
      return;
    }
    case Collective::all_gather:
      for (int s = 0; s < n - 1; ++s) {
        plan.send(next, s == 0 ? Place{Space::input, 0} : Place{Space::output, rank(r - s) * q.count}, q.count);
        if (s == 0) plan.copy({Space::input, 0}, {Space::output, r * q.count}, q.count);
        plan.receive(before, {Space::output, rank(r - s - 1) * q.count}, q.count);
      }
      if (n == 1) plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
      return;
    case Collective::broadcast:
      if (r != q.root) plan.receive(before, {Space::output, 0}, q.count);
      if (next != q.root) plan.send(next, {Space::output, 0}, q.count);
      return;
    default: return;
  }
}

}  // namespace lamina::comm
