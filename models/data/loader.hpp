// Loader: the batches of a data set in the order of a run, made ahead of time by loader threads.
//
// Order. An epoch is one permutation of the set, a function of (seed, epoch); the epoch advances by itself. Step k of
// an epoch takes places [k*batch, (k+1)*batch) of it, over all ranks together; rank r of W takes of a step's m places
// those in [m*r/W, m*(r+1)/W). So ranks are disjoint and cover the set by construction, and what a step consists of
// does not depend on how many ranks share it, nor on the loader threads. Tail. When batch does not divide the set, the
// last step has what is left, shared out in the same way (a rank's part may then be empty: a Batch of size 0, so that
// all ranks take the same number of steps); with drop_last that step does not exist, and which examples it would have
// had differs by epoch. Ids. Example `index` in `epoch` has the id epoch * size + index.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "lamina/core/device.hpp"
#include "lamina/models/data/dataset.hpp"

namespace lamina {

struct LoaderOptions {
  std::int64_t batch = 64;  ///< examples of one step over all ranks together, >= world
  bool shuffle = true;      ///< false: every epoch in the set's own order
  bool drop_last = false;   ///< no step smaller than `batch`
  std::uint64_t seed = 0;   ///< of the order; the same on every rank
  int rank = 0;
  int world = 1;     ///< ranks that share each step
  int threads = 1;   ///< loader threads, started by the first next(); 0 = batches are made by next() itself
  int prefetch = 4;  ///< batches made ahead at most, >= 1; without meaning for 0 threads
};

/// A place in a run, before the batch that comes next. The same on every rank, and for every number of ranks.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;     ///< steps of the epoch already taken
  std::int64_t examples = 0;  ///< seen in the run by all ranks together; checked when a position is restored
  friend bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

/// Belongs to one thread at a time.
class Loader {
 public:
  /// Throws ValueError for options outside their ranges, and when drop_last leaves no step at all.
  Loader(std::shared_ptr<const Dataset> dataset, Device device, const LoaderOptions& options);
  /// Never hangs: waits at most for the reads in progress.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch; goes on for ever, from epoch to epoch. Throws what the data set threw for this batch. The
  /// position then stays: the next call reads the same batch again, seek() can pass over it.
  Batch next();

  LoaderPosition position() const noexcept;
  /// The position after `steps` more steps from `from`, without reading anything.
  LoaderPosition advanced(const LoaderPosition& from, std::int64_t steps = 1) const;
  /// Goes on from there; batches made ahead are dropped, skipped data is not read. Throws ValueError for a position
  /// that these options and this set cannot have been at (another batch size, another set).
  void seek(const LoaderPosition& position);

  std::int64_t batches_per_epoch() const noexcept;
  const Dataset& dataset() const noexcept;
  const LoaderOptions& options() const noexcept;
  /// How long next() has kept its callers so far: reading or waiting for a batch.
  std::chrono::nanoseconds waited() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lamina
