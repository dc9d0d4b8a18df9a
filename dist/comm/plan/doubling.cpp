// Ranks in pairs at distances that halve or double: log2(n) rounds. Where n is no power of two, the first ranks meet in
// pairs beforehand, one of each pair goes on for both, and tells the other at the end. (Thakur, Rabenseifner and Gropp,
// Optimization of collective communication operations in MPICH, 2005.)
#include <bit>

#include "lamina/dist/comm/plan/builder.hpp"

namespace lamina::comm {

namespace {

// The power of two of ranks that go on.
struct Fold {
  explicit Fold(const PlanRequest& q)
      : power(static_cast<int>(std::bit_floor(static_cast<unsigned>(q.world)))), rest(q.world - power), rank(q.rank) {}
  int power, rest, rank;

  bool paired() const { return rank < 2 * rest; }
  bool goes_on() const { return !paired() || rank % 2 == 1; }
  int partner() const { return rank ^ 1; }
  // Its number among those that go on, and back.
  int place() const { return paired() ? rank / 2 : rank - rest; }
  int rank_of(int at) const { return at < rest ? 2 * at + 1 : at + rest; }
};

}  // namespace

void halving_doubling(const PlanRequest& q, Builder& plan) {
  if (q.world == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
  const Fold fold(q);
  const Place in{Space::input, 0}, out{Space::output, 0};
  if (!fold.goes_on()) {
    plan.send(fold.partner(), in, q.count);
    return plan.receive(fold.partner(), out, q.count);
  }
  Space current = Space::input;  // where this rank's sums are
  if (fold.paired()) {
    plan.reduce(fold.partner(), in, out, q.count, true, fold.power == 1);
    current = Space::output;
  }
  const auto range = [&](int first, int last) {  // of blocks
    const Block a = block_of(q.count, fold.power, first), b = block_of(q.count, fold.power, last - 1);
    return Block{a.first, b.first + b.count - a.first};
  };
  const int me = fold.place();
  int first = 0, last = fold.power;
  for (int distance = fold.power / 2; distance > 0; distance /= 2) {
    const int peer = fold.rank_of(me ^ distance), middle = (first + last) / 2;
    const bool low = (me & distance) == 0;
    const Block keep = low ? range(first, middle) : range(middle, last);
    const Block give = low ? range(middle, last) : range(first, middle);
    (low ? last : first) = middle;
    plan.send(peer, {current, give.first}, give.count);
    plan.reduce(peer, {current, keep.first}, {Space::output, keep.first}, keep.count, !low, distance == 1);
    current = Space::output;
  }
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int peer = fold.rank_of(me ^ distance);
    const Block mine = range(first, last);
    const int width = last - first;
    const bool low = (me & distance) == 0;
    const int other = low ? last : first - width;
    const Block theirs = range(other, other + width);
    plan.send(peer, {Space::output, mine.first}, mine.count);
    plan.receive(peer, {Space::output, theirs.first}, theirs.count);
    first = std::min(first, other);
    last = first + 2 * width;
  }
  if (fold.paired()) plan.send(fold.partner(), out, q.count);
}

void doubling(const PlanRequest& q, Builder& plan) {
  const int n = q.world, r = q.rank;
  if (q.op == Collective::barrier) {
    for (int distance = 1; distance < n; distance *= 2) {
      plan.signal((r + distance) % n);
      plan.await((r - distance + n) % n);
    }
    return;
  }
  if (n == 1) return plan.copy({Space::input, 0}, {Space::output, 0}, q.count);
  const Fold fold(q);
  const Place in{Space::input, 0}, out{Space::output, 0}, spare{Space::scratch, 0};
  if (!fold.goes_on()) {
    plan.send(fold.partner(), in, q.count);
    return plan.receive(fold.partner(), out, q.count);
  }
  Place current = in;
  if (fold.paired()) {
    plan.reduce(fold.partner(), in, out, q.count, true, fold.power == 1);
    current = out;
  }
  // Both of a pair read what the other sends in its place: results go to the other of two places. Operands are in the
  // order of ranks, so that all compute the same expression.
  const int me = fold.place();
  for (int distance = 1; distance < fold.power; distance *= 2) {
    const int peer = fold.rank_of(me ^ distance);
    const Place next = current.space == Space::scratch ? out : spare;
    plan.send(peer, current, q.count);
    plan.reduce(peer, current, next, q.count, (me & distance) != 0, 2 * distance == fold.power);
    current = next;
  }
  if (fold.paired()) plan.send(fold.partner(), current, q.count);
  if (current.space == Space::scratch) plan.copy(current, out, q.count);
}

}  // namespace lamina::comm
