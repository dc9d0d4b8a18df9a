// Plans of all ranks, run in one place: every interleaving a transport could make, without one. Messages are read where
// they lie, as between threads, so that memory written too early shows.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <random>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/plan.hpp"
#include "lamina/dist/comm/reduce.hpp"

namespace lamina::comm {
namespace {

std::string describe(const PlanRequest& q) {
  return fmt::format("{} by {}, {} ranks, root {}, {} elements, segments of {}, {}", name_of(q.op),
                     name_of(q.algorithm), q.world, q.root, q.count, q.segment,
                     q.in_place ? "in place" : "out of place");
}

// Of each rank: elements of its buffers, as the collective defines them.
std::int64_t input_count(const PlanRequest& q, int rank) {
  switch (q.op) {
    case Collective::all_to_all: return q.world * q.count;
    case Collective::scatter: return rank == q.root ? q.world * q.count : 0;
    case Collective::barrier: return 0;
    default: return q.count;
  }
}
std::int64_t output_count(const PlanRequest& q, int rank) {
  switch (q.op) {
    case Collective::reduce_scatter: return block_of(q.count, q.world, rank).count;
    case Collective::all_gather:
    case Collective::all_to_all: return q.world * q.count;
    case Collective::gather: return rank == q.root ? q.world * q.count : 0;
    case Collective::barrier: return 0;
    default: return q.count;
  }
}

struct Message {
  const float* bytes;
  std::int64_t count;
  int sender;
};

struct Rank {
  std::vector<float> input, output, scratch;
  std::vector<Step> sends, arrivals;
  std::size_t sent = 0, arrived = 0, taken = 0;
  std::vector<bool> was_taken;  // of each send
  std::vector<int> finals;      // how often each output element became final here
  float* at(const PlanRequest& q, Space space, std::int64_t i) {
    if (space == Space::scratch) return scratch.data() + i;
    return (space == Space::input && !q.in_place ? input : output).data() + i;
  }
};

// Empty if all went well; what is wrong otherwise.
class Simulation {
 public:
  Simulation(const PlanRequest& request, std::vector<Plan> plans, std::vector<std::vector<float>> inputs)
      : q_(request), ranks_(static_cast<std::size_t>(request.world)), inputs_(std::move(inputs)) {
    for (int r = 0; r < q_.world; ++r) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      const Plan& plan = plans[static_cast<std::size_t>(r)];
      rank.input = inputs_[static_cast<std::size_t>(r)];
      rank.output.assign(static_cast<std::size_t>(output_count(q_, r)), -1);
      if (q_.in_place) rank.output = rank.input;
      rank.scratch.assign(static_cast<std::size_t>(plan.scratch), -2);
      for (const Step& s : plan.steps) (s.kind == Step::Kind::send ? rank.sends : rank.arrivals).push_back(s);
      rank.was_taken.assign(rank.sends.size(), false);
    }
    channels_.resize(ranks_.size() * ranks_.size());
  }

  std::string run(std::mt19937& random) {
    for (;;) {
      // Ranks and streams in a random order; the first that can move does.
      std::vector<int> order;
      for (int i = 0; i < 2 * q_.world; ++i) order.push_back(i);
      std::shuffle(order.begin(), order.end(), random);
      bool moved = false, left = false;
      for (const int i : order) {
        Rank& rank = ranks_[static_cast<std::size_t>(i / 2)];
        left = left || rank.sent < rank.sends.size() || rank.arrived < rank.arrivals.size();
        moved = i % 2 == 0 ? send(i / 2) : arrive(i / 2);
        if (!error_.empty()) return error_;
        if (moved) break;
      }
      if (!moved) {
        if (left) return "nobody can go on";
        for (const auto& c : channels_) {
          if (!c.empty()) return "a message is left over";
        }
        return "";
      }
    }
  }
  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  std::deque<std::pair<Message, std::size_t>>& channel(int from, int to) {
    return channels_[static_cast<std::size_t>(from * q_.world + to)];
  }

  bool send(int r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.sent == rank.sends.size()) return false;
    const Step& s = rank.sends[rank.sent];
    if (static_cast<std::size_t>(s.after) > rank.arrived) return false;
    if (s.peer == r || s.peer < 0 || s.peer >= q_.world) error_ = "a send to nobody";
    channel(r, s.peer).push_back({{rank.at(q_, s.own, s.own_at), s.count, r}, rank.sent});
    ++rank.sent;
    return true;
  }

  bool arrive(int r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    if (rank.arrived == rank.arrivals.size()) return false;
    const Step& s = rank.arrivals[rank.arrived];
    while (rank.taken < rank.sent && rank.was_taken[rank.taken]) ++rank.taken;
    if (static_cast<std::size_t>(s.after) > rank.taken) return false;
    float* const to = rank.at(q_, s.to, s.to_at);
    const float* const own = rank.at(q_, s.own, s.own_at);
    if (s.kind == Step::Kind::copy) {
      check_written(rank, s);
      std::copy(own, own + s.count, to);
    } else {
      auto& c = channel(s.peer, r);
      if (c.empty()) return false;
      const auto [message, index] = c.front();
      c.pop_front();
      if (message.count != s.count) error_ = fmt::format("{} elements came where {} should", message.count, s.count);
      check_written(rank, s);
      if (!error_.empty()) return false;
      if (s.kind == Step::Kind::receive) {
        std::copy(message.bytes, message.bytes + s.count, to);
      } else {
        auto bytes = [](const float* p) { return reinterpret_cast<const std::byte*>(p); };
        reduce(DType::f32, Reduction::sum, reinterpret_cast<std::byte*>(to),
               bytes(s.theirs_first ? message.bytes : own), bytes(s.theirs_first ? own : message.bytes), s.count);
      }
      ranks_[static_cast<std::size_t>(s.peer)].was_taken[index] = true;
    }
    ++rank.arrived;
    return true;
  }

  // Nothing may be written that a message on its way still shows.
  void check_written(Rank& rank, const Step& s) {
    const float* const first = rank.at(q_, s.to, s.to_at);
    for (std::size_t i = 0; i < rank.sent; ++i) {
      const Step& sent = rank.sends[i];
      const float* const other = rank.at(q_, sent.own, sent.own_at);
      if (!rank.was_taken[i] && first < other + sent.count && other < first + s.count) {
        error_ = "memory is written that a message still shows";
      }
    }
  }

  PlanRequest q_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<float>> inputs_;
  std::vector<std::deque<std::pair<Message, std::size_t>>> channels_;
  std::string error_;
};

std::vector<Plan> plans_of(PlanRequest q) {
  std::vector<Plan> plans;
  for (q.rank = 0; q.rank < q.world; ++q.rank) plans.push_back(make_plan(q));
  return plans;
}

float whole(int rank, std::int64_t i) { return static_cast<float>((rank * 31 + i * 7) % 23); }

std::vector<std::vector<float>> whole_inputs(const PlanRequest& q) {
  std::vector<std::vector<float>> inputs;
  for (int r = 0; r < q.world; ++r) {
    inputs.emplace_back();
    for (std::int64_t i = 0; i < input_count(q, r); ++i) inputs.back().push_back(whole(r, i));
  }
  return inputs;
}

// What rank r's output must be; nan where anything may be.
std::vector<float> wanted(const PlanRequest& q, int r) {
  std::vector<float> out;
  const Block mine = block_of(q.count, q.world, r);
  for (std::int64_t i = 0; i < output_count(q, r); ++i) {
    float x = 0;
    switch (q.op) {
      case Collective::all_reduce:
      case Collective::reduce_scatter:
        for (int k = 0; k < q.world; ++k) x += whole(k, q.op == Collective::all_reduce ? i : mine.first + i);
        break;
      case Collective::broadcast: x = whole(q.root, i); break;
      case Collective::all_gather:
      case Collective::gather: x = whole(static_cast<int>(i / q.count), i % q.count); break;
      case Collective::all_to_all: x = whole(static_cast<int>(i / q.count), r * q.count + i % q.count); break;
      case Collective::scatter: x = whole(q.root, r * q.count + i); break;
      default: break;
    }
    out.push_back(x);
  }
  return out;
}

std::string check(const PlanRequest& q, const std::vector<Plan>& plans, std::mt19937& random) {
  Simulation simulation(q, plans, whole_inputs(q));
  if (std::string error = simulation.run(random); !error.empty()) return error;
  const auto inputs = whole_inputs(q);
  for (int r = 0; r < q.world; ++r) {
    const Rank& rank = simulation.ranks()[static_cast<std::size_t>(r)];
    if (rank.output != wanted(q, r)) return fmt::format("rank {} has something else", r);
    if (!q.in_place && rank.input != inputs[static_cast<std::size_t>(r)]) return "an input was written";
  }
  return "";
}

std::vector<PlanRequest> requests(const std::vector<int>& worlds) {
  std::vector<PlanRequest> all;
  const std::pair<Collective, bool> ops[] = {
      {Collective::all_reduce, true},  {Collective::all_reduce, false}, {Collective::reduce_scatter, false},
      {Collective::all_gather, false}, {Collective::broadcast, true},   {Collective::all_to_all, false},
      {Collective::gather, false},     {Collective::scatter, false},    {Collective::barrier, true}};
  for (const auto& [op, in_place] : ops) {
    for (const Algorithm algorithm : algorithms_of(op)) {
      for (const int world : worlds) {
        const bool rooted = op == Collective::broadcast || op == Collective::gather || op == Collective::scatter;
        for (int root = 0; root < (rooted ? world : 1); ++root) {
          for (const std::int64_t count : {0, 1, 2, world - 1, world, world + 1, 2 * world - 1, 53}) {
            for (const std::int64_t segment : {std::int64_t{1}, std::int64_t{3}, std::int64_t{1000}}) {
              if (op == Collective::barrier && (count != 0 || segment != 3)) continue;
              all.push_back({op, algorithm, 0, world, root, count, segment, in_place});
            }
          }
        }
      }
    }
  }
  return all;
}

TEST(Plans, AnyInterleavingGivesThePlainResult) {
  std::mt19937 random(1);
  for (const PlanRequest& q : requests({1, 2, 3, 4, 5, 6, 7, 8, 9})) {
    const std::vector<Plan> plans = plans_of(q);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(check(q, plans, random), "") << describe(q);
  }
}

TEST(Plans, AlsoOfManyRanks) {
  std::mt19937 random(2);
  for (PlanRequest q : requests({16, 17})) {
    if (q.root % 5 != 0 || q.segment == 1) continue;
    ASSERT_EQ(check(q, plans_of(q), random), "") << describe(q);
  }
}

TEST(Plans, PayloadIsTheFormulas) {
  for (const PlanRequest& q : requests({1, 2, 3, 4, 5, 8, 9, 16, 17})) {
    std::int64_t sent = 0;
    for (const Plan& plan : plans_of(q)) sent += plan.sent();
    ASSERT_EQ(sent, payload_of(q)) << describe(q);
  }
}

// Every element of a reduction becomes final exactly once wherever it is computed: there a mean divides.
TEST(Plans, EveryElementIsFinalOnce) {
  for (const PlanRequest& q : requests({2, 3, 4, 5, 8, 9})) {
    if (q.op != Collective::all_reduce && q.op != Collective::reduce_scatter) continue;
    std::vector<int> everywhere(static_cast<std::size_t>(q.count), 0);
    const std::vector<Plan> plans = plans_of(q);
    for (int r = 0; r < q.world; ++r) {
      // Places in output and scratch are elements of the vector, but for a block scattered.
      const std::int64_t first = q.op == Collective::all_reduce ? 0 : block_of(q.count, q.world, r).first;
      std::vector<int> here(everywhere.size(), 0);
      bool reduces = false;
      for (const Step& s : plans[static_cast<std::size_t>(r)].steps) {
        reduces = reduces || s.kind == Step::Kind::reduce;
        for (std::int64_t i = 0; s.last && i < s.count; ++i) ++here[static_cast<std::size_t>(first + s.to_at + i)];
      }
      for (std::size_t i = 0; i < here.size(); ++i) {
        // By doubling, each rank that computes anything computes all.
        if (q.algorithm == Algorithm::doubling) ASSERT_EQ(here[i], reduces ? 1 : 0) << describe(q);
        everywhere[i] += here[i];
      }
    }
    if (q.algorithm == Algorithm::doubling) continue;
    for (const int n : everywhere) ASSERT_EQ(n, 1) << describe(q);
  }
}

TEST(Plans, AllRanksComputeTheSameBits) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  for (const PlanRequest& q : requests({2, 3, 4, 5, 7, 8, 9})) {
    if (q.op != Collective::all_reduce || q.count < q.world) continue;
    std::vector<std::vector<float>> inputs(static_cast<std::size_t>(q.world));
    for (std::size_t r = 0; r < inputs.size(); ++r) {
      for (std::int64_t i = 0; i < q.count; ++i) inputs[r].push_back(normal(random));
      inputs[r][0] = std::nanf(std::to_string(r + 1).c_str());  // NaNs that differ
    }
    Simulation simulation(q, plans_of(q), inputs);
    ASSERT_EQ(simulation.run(random), "");
    for (const Rank& rank : simulation.ranks()) {
      ASSERT_EQ(
          std::memcmp(rank.output.data(), simulation.ranks()[0].output.data(), rank.output.size() * sizeof(float)), 0)
          << describe(q);
    }
  }
}

TEST(Plans, RankOrderIsTheOrderOfRanks) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const PlanRequest q{Collective::all_reduce, Algorithm::rank_order, 0, 7, 0, 40, 9, true};
  std::vector<std::vector<float>> inputs(7);
  for (auto& v : inputs) {
    for (int i = 0; i < 40; ++i) v.push_back(normal(random));
  }
  Simulation simulation(q, plans_of(q), inputs);
  ASSERT_EQ(simulation.run(random), "");
  for (std::size_t i = 0; i < 40; ++i) {
    float sum = inputs[0][i];
    for (std::size_t r = 1; r < 7; ++r) sum += inputs[r][i];
    EXPECT_EQ(simulation.ranks()[3].output[i], sum);
  }
}

// A damaged plan must be noticed in some interleaving: otherwise the checks above say nothing.
TEST(Plans, DamageIsFound) {
  std::mt19937 random(6);
  int damaged = 0, found = 0;
  std::string missed;
  for (const PlanRequest& q : requests({3, 4})) {
    if (q.count != 53 || q.segment == 1 || q.op == Collective::barrier) continue;
    for (const char* kind : {"dropped", "shifted", "impatient", "swapped"}) {
      std::vector<Plan> plans = plans_of(q);
      std::vector<Step>& steps = plans[1].steps;
      if (steps.empty()) continue;
      const std::size_t at = random() % steps.size();
      Step& step = steps[at];
      if (std::string(kind) == "dropped") {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (std::string(kind) == "shifted") {
        if (step.count == 0) continue;
        --step.count;
      } else if (std::string(kind) == "impatient") {
        // Only sends that wait for what they send.
        if (step.kind != Step::Kind::send || step.after == 0) continue;
        step.after = 0;
      } else {
        if (step.kind == Step::Kind::copy) continue;  // their order is nobody's business
        std::size_t other = at + 1;
        while (other < steps.size() &&
               (steps[other].kind != step.kind || steps[other].count != step.count || steps[other].peer != step.peer)) {
          ++other;
        }
        if (other >= steps.size()) continue;
        std::swap(steps[at], steps[other]);
      }
      ++damaged;
      bool noticed = false;
      for (int i = 0; i < 2000 && !noticed; ++i) noticed = !check(q, plans, random).empty();
      found += noticed ? 1 : 0;
      if (!noticed) missed += fmt::format("{} step {} of {}\n", kind, at, describe(q));
    }
  }
  EXPECT_GT(damaged, 40);
  EXPECT_EQ(found, damaged) << missed;
}

// An arrival that does not wait for what its memory still shows: by doubling, where two places alternate.
TEST(Plans, WritingTooEarlyIsFound) {
  std::mt19937 random(8);
  const PlanRequest q{Collective::all_reduce, Algorithm::doubling, 0, 8, 0, 30, 10, true};
  std::vector<Plan> plans = plans_of(q);
  int waits = 0;
  for (Step& step : plans[3].steps) {
    if (step.kind == Step::Kind::send || step.after == 0) continue;
    ++waits;
    step.after = 0;
  }
  ASSERT_GT(waits, 0);
  std::string error;
  for (int i = 0; i < 2000 && error.empty(); ++i) error = check(q, plans, random);
  EXPECT_EQ(error, "memory is written that a message still shows");
}

TEST(Plans, BadRequestsAreNamed) {
  EXPECT_THROW(make_plan({Collective::reduce_scatter, Algorithm::direct, 0, 2, 0, 4, 1, true}), ValueError);
  EXPECT_THROW(make_plan({Collective::all_gather, Algorithm::ring, 0, 2, 0, 4, 1, true}), ValueError);
  EXPECT_THROW(make_plan({Collective::point_to_point, Algorithm::direct, 0, 2, 0, 4, 1, false}), ValueError);
  EXPECT_THROW(make_plan({Collective::all_reduce, Algorithm::direct, 0, 2, 0, 1, 1, true}), ValueError);
  EXPECT_THROW(make_plan({Collective::all_reduce, Algorithm::ring, 2, 2, 0, 1, 1, true}), ValueError);
  EXPECT_THROW(make_plan({Collective::all_reduce, Algorithm::ring, 0, 2, 0, -1, 1, true}), ValueError);
  EXPECT_THROW(make_plan({Collective::all_reduce, Algorithm::ring, 0, 2, 0, 1, 0, true}), ValueError);
}

TEST(Plans, HugeCountsDoNotOverflow) {
  const std::int64_t huge = std::int64_t{1} << 40;
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    PlanRequest q{Collective::all_reduce, algorithm, 0, 3, 0, huge, huge, true};
    std::int64_t sent = 0;
    for (const Plan& plan : plans_of(q)) sent += plan.sent();
    EXPECT_EQ(sent, payload_of(q));
  }
}

}  // namespace
}  // namespace lamina::comm
