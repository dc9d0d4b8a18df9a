// Group: the ranks that talk to each other, and the collectives between them.
//
//   Group group = connect();                           // world.hpp: lamina launch, torchrun, mpirun, srun; or alone
//   Work work = group.all_reduce(buffer_of(gradients), Reduction::mean);
//   ...                                                // compute meanwhile
//   work.wait();
//
// Every rank of a group calls the same collectives in the same order; a rank that does something else makes a Mismatch
// on every rank, naming both (one that only had to send may learn of it in its next call). All ranks end with the same
// bits. A rank that dies makes a PeerLost on every rank, one that is late a Timeout after the group's one deadline;
// both name it. After any of these the group is of no more use: make another one of the survivors. Any count is fine, 0
// and more than 2^31 too. Thread-safety: all members, but the order of calls is what counts.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "lamina/dist/comm/buffer.hpp"
#include "lamina/dist/comm/plan_runner.hpp"
#include "lamina/dist/comm/transport/transport.hpp"
#include "lamina/dist/comm/work.hpp"

namespace lamina::comm {

struct GroupOptions {
  /// From a collective's call to its end.
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
  /// Most bytes of a message: smaller ones overlap better, larger ones cost less.
  std::int64_t segment_bytes = std::int64_t{128} << 10;
  /// What `automatic` is decided by; the transport's nominal figures if zero, so that results have the same bits from
  /// run to run whatever the machine does.
  Transport::Link link{0, 0};
  std::chrono::microseconds spin{-1};  ///< as PlanRunner::Options
  int ranks_on_host = 0;               ///< as there
};

class Group {
 public:
  explicit Group(std::unique_ptr<Transport> transport, const GroupOptions& options = {});
  Group(Group&&) noexcept = default;
  Group& operator=(Group&&) noexcept = default;
  ~Group();

  /// One group a thread: element r is rank r's.
  static std::vector<Group> threads(int size, const GroupOptions& options = {});

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::string transport_name() const;

  // Buffers must live, and be left alone, until the work is done. Outputs may not overlap inputs, but for all_reduce,
  // where both may be the same memory. Throws ValueError, DTypeError and ShapeError for arguments that cannot be, what
  // ended the group if something did; all else comes out of Work::wait().

  /// data = the reduction over all ranks' data, element by element. Mean is for floating dtypes.
  Work all_reduce(Buffer data, Reduction reduction = Reduction::sum, Algorithm algorithm = Algorithm::automatic);
  /// The same out of place.
  Work all_reduce(ConstBuffer in, Buffer out, Reduction reduction = Reduction::sum,
                  Algorithm algorithm = Algorithm::automatic);
  /// out = this rank's block of the reduction; block r is block_of(in.count(), size(), r).
  Work reduce_scatter(ConstBuffer in, Buffer out, Reduction reduction = Reduction::sum,
                      Algorithm algorithm = Algorithm::automatic);
  /// out = every rank's `in`, in the order of ranks; all of one count.
  Work all_gather(ConstBuffer in, Buffer out, Algorithm algorithm = Algorithm::automatic);
  /// data = the root's.
  Work broadcast(Buffer data, int root, Algorithm algorithm = Algorithm::automatic);
  /// Block r of `in` goes to rank r; block r of `out` came from rank r. in.count() a multiple of size().
  Work all_to_all(ConstBuffer in, Buffer out);
  /// The root's `out` = every rank's `in`; other ranks' `out` is not used and may be empty.
  Work gather(ConstBuffer in, Buffer out, int root);
  /// out = block `rank()` of the root's `in`; other ranks' `in` is not used and may be empty.
  Work scatter(ConstBuffer in, Buffer out, int root);
  /// Done when every rank has called it.
  Work barrier();
  /// A message; the receiver's dtype, count and tag must be the sender's. Messages of a pair arrive in order.
  Work send(ConstBuffer data, int to, int tag = 0);
  Work receive(Buffer data, int from, int tag = 0);

  /// Payload bytes this rank has sent.
  std::int64_t bytes_sent() const;
  /// What `automatic` would take.
  Algorithm algorithm_for(Collective op, std::int64_t bytes) const;

 private:
  Work start(Signature what, std::int64_t plan_count, ConstBuffer in, Buffer out, bool in_place);
  Work exchange(Step::Kind kind, int peer, int tag, ConstBuffer in, Buffer out);
  std::shared_ptr<const Program> program(const PlanRequest& request);
  void check_root(std::string_view op, int root) const;

  int rank_ = 0, size_ = 1;
  GroupOptions options_;
  std::shared_ptr<PlanRunner> runner_;
  struct Shared;  // the sequence number and the plans made so far
  std::shared_ptr<Shared> shared_;
};

}  // namespace lamina::comm
