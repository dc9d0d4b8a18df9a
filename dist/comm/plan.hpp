// Plan: what one rank does in a collective, as data. A test can run the plans of all ranks in one array; PlanRunner
// runs them everywhere. Generators are pure functions of (rank, world, count, ...), one file an algorithm in plan/.
//
// Arrivals (receive, reduce, copy) happen in the order of the plan, and so do sends; the two streams are independent
// but for `after`. Messages between a pair of ranks arrive in the order they were sent, and both sides' plans must
// agree on their sizes. Everything is in elements; an empty step is left out.
#pragma once

#include <cstdint>
#include <vector>

#include "lamina/dist/comm/message.hpp"

namespace lamina::comm {

/// The buffers of a work. For an in-place collective input and output are the same memory.
enum class Space : std::uint8_t { input, output, scratch };

struct Step {
  enum class Kind : std::uint8_t {
    send,     ///< own -> peer
    receive,  ///< peer -> to
    reduce,   ///< to = own (op) what the peer sent
    copy,     ///< to = own
  };
  Kind kind = Kind::send;
  Space own = Space::input;
  Space to = Space::output;
  bool theirs_first = false;  ///< reduce: to = theirs (op) own. With it all ranks compute the same expression
  bool last = false;          ///< reduce: the result is final (mean divides here)
  std::int32_t peer = 0;
  std::int64_t own_at = 0;  ///< first element in `own`
  std::int64_t to_at = 0;   ///< first element in `to`; may be own_at
  std::int64_t count = 0;
  std::int32_t after = 0;  ///< send: arrivals that must be done first; arrivals: sends whose bytes must be taken first
};

struct Plan {
  std::vector<Step> steps;
  std::int64_t scratch = 0;  ///< elements

  /// Payload elements this rank sends.
  std::int64_t sent() const noexcept;
};

/// What a plan is made for.
struct PlanRequest {
  Collective op = Collective::all_reduce;
  Algorithm algorithm = Algorithm::ring;
  int rank = 0;
  int world = 1;
  int root = 0;
  /// all_reduce, broadcast: elements of the vector. reduce_scatter: of the input (blocks of block_of()). all_gather,
  /// all_to_all, gather, scatter: of one rank's block.
  std::int64_t count = 0;
  std::int64_t segment = 1 << 15;  ///< most elements of a message, so that stages overlap; >= 1
  bool in_place = true;            ///< input and output are the same memory: all_reduce, broadcast, barrier only
};

/// Throws ValueError for an algorithm that the collective does not have, for what cannot be done in place, and for
/// numbers that make no sense.
Plan make_plan(const PlanRequest& request);

/// The algorithms a collective has, the default for large messages first.
std::vector<Algorithm> algorithms_of(Collective op);

/// Payload elements all ranks together send: the closed formula that plans and transports are tested against.
std::int64_t payload_of(const PlanRequest& request);

/// The elements of block `index` when `count` are split over `world` ranks: sizes differ by at most one, the larger
/// blocks first.
struct Block {
  std::int64_t first = 0, count = 0;
};
Block block_of(std::int64_t count, int world, int index) noexcept;

}  // namespace lamina::comm
