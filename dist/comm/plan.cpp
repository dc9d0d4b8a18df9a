#include "lamina/dist/comm/plan.hpp"

#include <algorithm>
#include <bit>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/plan/builder.hpp"

namespace lamina::comm {

Block block_of(std::int64_t count, int world, int index) noexcept {
  const std::int64_t size = count / world, larger = count % world;
  return {index * size + std::min<std::int64_t>(index, larger), size + (index < larger ? 1 : 0)};
}

std::vector<Algorithm> algorithms_of(Collective op) {
  switch (op) {
    case Collective::all_reduce:
      return {Algorithm::ring, Algorithm::halving_doubling, Algorithm::doubling, Algorithm::tree,
              Algorithm::rank_order};
    case Collective::reduce_scatter:
    case Collective::all_gather: return {Algorithm::ring, Algorithm::direct};
    case Collective::broadcast: return {Algorithm::ring, Algorithm::tree};
    case Collective::barrier: return {Algorithm::doubling};
    case Collective::point_to_point: return {};
    default: return {Algorithm::direct};
  }
}

Plan make_plan(const PlanRequest& q) {
  if (q.op == Collective::point_to_point) fail<ValueError>("plan", "a message between two ranks needs none");
  const std::vector<Algorithm> known = algorithms_of(q.op);
  if (std::find(known.begin(), known.end(), q.algorithm) == known.end()) {
    std::string names;
    for (const Algorithm a : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(a));
    fail<ValueError>(name_of(q.op), "no plan by {}; there are {}", name_of(q.algorithm), names);
  }
  if (q.world < 1 || q.rank < 0 || q.rank >= q.world || q.count < 0 || q.segment < 1) {
    fail<ValueError>("plan", "rank {} of {}, {} elements in segments of {}", q.rank, q.world, q.count, q.segment);
  }
  // Elsewhere a block of the output would lie on blocks of the input that are still to be sent.
  const bool one_vector =
      q.op == Collective::all_reduce || q.op == Collective::broadcast || q.op == Collective::barrier;
  if (q.in_place && !one_vector) fail<ValueError>(name_of(q.op), "cannot be done in place");
  Builder plan(q);
  switch (q.algorithm) {
    case Algorithm::ring: ring(q, plan); break;
    case Algorithm::halving_doubling: halving_doubling(q, plan); break;
    case Algorithm::doubling: doubling(q, plan); break;
    case Algorithm::tree: tree(q, plan); break;
    case Algorithm::rank_order: rank_order(q, plan); break;
    case Algorithm::direct: direct(q, plan); break;
    case Algorithm::automatic: break;
  }
  return plan.finish();
}

std::int64_t Plan::sent() const noexcept {
  std::int64_t elements = 0;
  for (const Step& step : steps) elements += step.kind == Step::Kind::send ? step.count : 0;
  return elements;
}

std::int64_t payload_of(const PlanRequest& q) {
  const std::int64_t n = q.world, c = q.count;
  switch (q.op) {
    case Collective::all_reduce: {
      const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<unsigned>(q.world)));
      const std::int64_t folded = 2 * (n - power) * c;  // to the partner and back
      if (q.algorithm == Algorithm::halving_doubling) return 2 * (power - 1) * c + folded;
      if (q.algorithm == Algorithm::doubling)
        return power * std::countr_zero(static_cast<unsigned>(power)) * c + folded;
      return 2 * (n - 1) * c;
    }
    case Collective::all_gather:
    case Collective::all_to_all: return n * (n - 1) * c;
    case Collective::barrier:
    case Collective::point_to_point: return 0;
    default: return (n - 1) * c;
  }
}

}  // namespace lamina::comm
