// Builder: writes a plan step by step, in the order in which one rank would do things one after another, and works out
// what may overlap: a send waits for the arrivals that wrote what it reads, an arrival for the sends and reads of the
// memory it writes. Ranges are cut into segments, each with dependencies of its own.
#pragma once

#include <array>
#include <map>
#include <utility>

#include "lamina/dist/comm/plan.hpp"

namespace lamina::comm {

/// A run of elements.
struct Place {
  Space space = Space::output;
  std::int64_t at = 0;
};

class Builder {
 public:
  explicit Builder(const PlanRequest& request) : request_(request) {}

  void send(int peer, Place own, std::int64_t count);
  void receive(int peer, Place to, std::int64_t count);
  /// to = own (op) what `peer` sends; with `theirs_first` the other way round.
  void reduce(int peer, Place own, Place to, std::int64_t count, bool theirs_first, bool last);
  void copy(Place own, Place to, std::int64_t count);
  /// Messages without payload, for a barrier.
  void signal(int peer);
  void await(int peer);

  Plan finish();

 private:
  // Who touched which elements last, by the number of its step in its stream + 1.
  class LastTouch {
   public:
    void note(std::int64_t first, std::int64_t count, std::int32_t by);
    std::int32_t latest(std::int64_t first, std::int64_t count) const;

   private:
    std::map<std::int64_t, std::pair<std::int64_t, std::int32_t>> runs_;  // first -> end, by; disjoint
  };

  Space real(Space space) const noexcept { return request_.in_place && space == Space::input ? Space::output : space; }
  // `count` elements by steps like `whole`, a segment each.
  void add(const Step& whole, std::int64_t count);

  PlanRequest request_;
  Plan plan_;
  std::int32_t sends_ = 0, arrivals_ = 0;
  std::array<LastTouch, 3> written_, sent_;  // by Space: by arrivals, by sends
};

// The algorithm families, one a file.
void ring(const PlanRequest& request, Builder& plan);
void halving_doubling(const PlanRequest& request, Builder& plan);
void doubling(const PlanRequest& request, Builder& plan);
void tree(const PlanRequest& request, Builder& plan);
void rank_order(const PlanRequest& request, Builder& plan);
void direct(const PlanRequest& request, Builder& plan);

}  // namespace lamina::comm
