#include "lamina/models/data/loader.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/models/data/permutation.hpp"

namespace lamina {

namespace {

// A batch in the making or made.
struct Slot {
  std::int64_t ticket = -1;  // which one it is for
  bool ready = false;
  Batch batch;
  std::exception_ptr error;
};

}  // namespace

// Tickets number the batches from the last seek on. A thread takes the next ticket, reads its batch without the lock
// and puts it into slot ticket % prefetch; next() takes the slots in order. A seek begins a new generation: what
// threads still bring from the old one is dropped.
struct Loader::State {
  State(std::shared_ptr<const Dataset> set, Device on, const LoaderOptions& opts)
      : dataset(std::move(set)), device(std::move(on)), options(opts) {}

  const std::shared_ptr<const Dataset> dataset;
  const Device device;
  const LoaderOptions options;
  std::int64_t steps = 0;           // of an epoch
  std::int64_t epoch_examples = 0;  // seen in an epoch, over all ranks
  LoaderPosition position;          // of the next batch; the caller's
  std::chrono::nanoseconds waited{0};
  std::vector<std::thread> threads;
  bool started = false;

  std::mutex mutex;
  std::condition_variable room;  // a ticket can be taken, or the end
  std::condition_variable made;  // a slot is ready
  std::vector<Slot> slots;
  LoaderPosition begin;  // of ticket 0
  std::int64_t taken = 0;
  std::int64_t delivered = 0;
  std::uint64_t generation = 0;
  bool stop = false;

  LoaderPosition advanced(const LoaderPosition& from, std::int64_t count) const {
    LoaderPosition to;
    to.epoch = from.epoch + (from.batch + count) / steps;
    to.batch = (from.batch + count) % steps;
    to.examples = to.epoch * epoch_examples + to.batch * options.batch;
    return to;
  }

  Batch read(const LoaderPosition& at) const {
    const std::int64_t size = dataset->size();
    const std::int64_t first = at.batch * options.batch;
    const std::int64_t places = std::min(options.batch, size - first);
    const std::int64_t lo = first + places * options.rank / options.world;
    const std::int64_t hi = first + places * (options.rank + 1) / options.world;
    const auto epoch = static_cast<std::uint64_t>(at.epoch);
    const Permutation order(static_cast<std::uint64_t>(size), data_rng(options.seed, DataStream::shuffle, epoch));
    std::vector<Example> examples;
    examples.reserve(static_cast<std::size_t>(hi - lo));
    for (std::int64_t place = lo; place < hi; ++place) {
      const auto index = options.shuffle ? order(static_cast<std::uint64_t>(place)) : static_cast<std::uint64_t>(place);
      examples.push_back({static_cast<std::int64_t>(index), epoch * static_cast<std::uint64_t>(size) + index});
    }
    return dataset->read(device, examples);
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      room.wait(lock, [&] { return stop || taken < delivered + options.prefetch; });
      if (stop) return;
      const std::int64_t ticket = taken++;
      const std::uint64_t mine = generation;
      const LoaderPosition at = advanced(begin, ticket);
      lock.unlock();
      Slot slot{ticket, true, {}, nullptr};
      try {
        slot.batch = read(at);
      } catch (...) {
        slot.error = std::current_exception();
      }
      lock.lock();
      if (mine == generation) {
        slots[static_cast<std::size_t>(ticket % options.prefetch)] = std::move(slot);
        made.notify_one();
      }
    }
  }

  // Where no thread can be started, next() reads by itself.
  void start() {
    started = true;
    slots.resize(static_cast<std::size_t>(options.prefetch));
    try {
      while (static_cast<int>(threads.size()) < std::min(options.threads, options.prefetch)) {
        threads.emplace_back([this] { work(); });
      }
    } catch (const std::system_error&) {
    }
  }

  void restart() {
    std::vector<Slot> dropped(slots.size());
    {
      const std::lock_guard lock(mutex);
      ++generation;
      begin = position;
      taken = 0;
      delivered = 0;
      std::swap(slots, dropped);
    }
    room.notify_all();
  }

  Batch take() {
    if (!started) start();
    if (threads.empty()) return read(position);
    Slot slot;
    {
      std::unique_lock lock(mutex);
      Slot& mine = slots[static_cast<std::size_t>(delivered % options.prefetch)];
      made.wait(lock, [&] { return mine.ready && mine.ticket == delivered; });
      slot = std::exchange(mine, Slot());
      if (!slot.error) ++delivered;
    }
    if (slot.error) {
      restart();
      std::rethrow_exception(slot.error);
    }
    room.notify_one();
    return std::move(slot.batch);
  }
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, Device device, const LoaderOptions& options) {
  if (!dataset) fail<ValueError>("loader", "no data set given");
  if (!device) fail<DeviceError>("loader", "no device given");
  if (options.world < 1 || options.rank < 0 || options.rank >= options.world) {
    fail<ValueError>("loader", "rank {} of {}; it is in [0, world) and world >= 1", options.rank, options.world);
  }
  if (options.batch < options.world || options.batch > std::int64_t{1} << 31) {
    fail<ValueError>("loader", "a batch of {} over {} rank(s); it is from one example a rank to 2^31", options.batch,
                     options.world);
  }
  if (options.threads < 0 || options.threads > 1024 || options.prefetch < 1 || options.prefetch > 65536) {
    fail<ValueError>("loader", "{} threads, {} batches ahead; 0 to 1024 and 1 to 65536 are allowed", options.threads,
                     options.prefetch);
  }
  state_ = std::make_unique<State>(std::move(dataset), std::move(device), options);
  const std::int64_t size = state_->dataset->size();
  state_->steps = size / options.batch + (!options.drop_last && size % options.batch != 0 ? 1 : 0);
  state_->epoch_examples = options.drop_last ? state_->steps * options.batch : size;
  if (state_->steps == 0) {
    fail<ValueError>("loader", "{} has {} examples, fewer than one batch of {}, and drop_last leaves none",
                     state_->dataset->name(), size, options.batch);
  }
}

Loader::~Loader() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->room.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

Batch Loader::next() {
  const auto begin = std::chrono::steady_clock::now();
  struct Clock {
    std::chrono::nanoseconds& sum;
    std::chrono::steady_clock::time_point since;
    ~Clock() { sum += std::chrono::steady_clock::now() - since; }
  } clock{state_->waited, begin};
  Batch batch = state_->take();
  state_->position = state_->advanced(state_->position, 1);
  return batch;
}

LoaderPosition Loader::position() const noexcept { return state_->position; }

LoaderPosition Loader::advanced(const LoaderPosition& from, std::int64_t steps) const {
  if (steps < 0) fail<ValueError>("loader", "cannot go back by {} steps", -steps);
  return state_->advanced(from, steps);
}

void Loader::seek(const LoaderPosition& position) {
  const std::int64_t max_epoch = (std::int64_t{1} << 62) / state_->dataset->size();
  const bool inside =
      position.epoch >= 0 && position.epoch <= max_epoch && position.batch >= 0 && position.batch < state_->steps;
  const std::int64_t examples = inside ? state_->advanced({position.epoch, position.batch, 0}, 0).examples : 0;
  if (!inside || position.examples != examples) {
    fail<ValueError>("loader",
                     "epoch {}, batch {}, {} examples is no place in {} examples with {} a step ({} steps an epoch); "
                     "the set, the batch size and drop_last must be those of the run that is resumed",
                     position.epoch, position.batch, position.examples, state_->dataset->size(), state_->options.batch,
                     state_->steps);
  }
  state_->position = position;
  state_->restart();
}

std::int64_t Loader::batches_per_epoch() const noexcept { return state_->steps; }
const Dataset& Loader::dataset() const noexcept { return *state_->dataset; }
const LoaderOptions& Loader::options() const noexcept { return state_->options; }
std::chrono::nanoseconds Loader::waited() const noexcept { return state_->waited; }

}  // namespace lamina
