// PlanRunner: runs plans over a transport, several at once. It is the one executor, the one deadline and the one error
// path of all collectives.
//
// Works are started in the order they were issued. Between a pair of ranks messages belong to works in that order;
// works that use different peers pass each other. Whoever waits drives progress; a thread of the runner's does it only
// while nobody waits, and sleeps in the kernel while there is nothing to do. Thread-safety: all members, from any
// thread.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "lamina/dist/comm/buffer.hpp"
#include "lamina/dist/comm/delivery.hpp"
#include "lamina/dist/comm/program.hpp"
#include "lamina/dist/comm/transport/transport.hpp"
#include "lamina/dist/comm/work.hpp"

namespace lamina::comm {

struct WorkState {
  Signature what;
  std::shared_ptr<const Program> program;
  std::array<ConstBuffer, 3> own;  // by Space, to be read
  std::array<Buffer, 3> to;        // by Space, to be written; the input's is empty
  std::vector<std::byte> scratch;

  // Owned by the runner's lock.
  std::size_t sent = 0, arrived = 0, taken = 0;  // how far along sends, arrivals, and sends whose bytes were read
  std::vector<std::uint64_t> tickets;            // of each send: which message to its peer it was
  std::vector<std::int32_t> left_to, left_from;  // beside program->send_peers, arrival_peers
  Outgoing outgoing;
  bool posting = false;
  Delivery delivery;
  bool pulling = false;
  WorkTimes times;
  std::exception_ptr error;
  bool finished = false;
};

class PlanRunner {
 public:
  struct Options {
    std::chrono::milliseconds timeout{std::chrono::minutes(5)};
    /// How long a waiter polls before it sleeps. Negative: long where every rank of the host has a processor of its
    /// own, short otherwise.
    std::chrono::microseconds spin{-1};
    int ranks_on_host = 0;  ///< 0: all
  };
  PlanRunner(std::unique_ptr<Transport> transport, const Options& options);
  ~PlanRunner();

  Transport& transport() noexcept { return *transport_; }
  const Options& options() const noexcept { return options_; }

  /// Throws what ended the group, if anything did.
  std::shared_ptr<WorkState> start(const Signature& what, std::shared_ptr<const Program> program, ConstBuffer input,
                                   Buffer output);
  void wait(WorkState& work);
  bool done(const WorkState& work);
  WorkTimes times(const WorkState& work);
  std::int64_t bytes_sent() const;

 private:
  struct Queues {  // works whose messages come next, of one peer
    std::deque<WorkState*> sending, receiving;
  };

  bool progress();                // true when anything moved; drops finished works
  bool advance(WorkState& work);  // the same for one
  bool advance_sends(WorkState& work);
  bool advance_arrivals(WorkState& work);
  void note_taken(WorkState& work);
  void finish(WorkState& work);
  void drive(std::unique_lock<std::mutex>& lock, const WorkState& work);
  void look_around();         // control plane and deadlines; ends the group if it must
  void look_for_strangers();  // messages that no work of this rank will ever take
  void question(WorkState& late);
  void end(const Abort& why, bool tell);
  RankState my_state() const;
  const WorkState* blocked() const;  // the first work that waits for an arrival
  int waits_for(const WorkState& work) const;
  void run_thread();
  Clock::time_point wake_time();

  std::unique_ptr<Transport> transport_;
  Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a work finished, the driver left
  std::condition_variable parked_cv_;
  std::deque<std::shared_ptr<WorkState>> works_;  // not finished, in the order of issue
  std::vector<Queues> queues_;                    // by peer
  std::vector<std::uint64_t> posted_;             // messages to each peer
  std::exception_ptr broken_;
  std::int64_t bytes_sent_ = 0;
  std::uint64_t sequence_ = 0;  // of the last collective issued
  int waiters_ = 0;
  bool driving_ = false;   // one of them looks after everything
  bool dozing_ = false;    // it is in transport_->sleep
  bool sleeping_ = false;  // the thread is
  bool parked_ = false;    // the thread waits for the waiters to go
  bool stop_ = false;
  Clock::time_point looked_{};
  Clock::time_point question_until_{};  // an ask() is out until then; zero: none
  std::thread thread_;
};

}  // namespace lamina::comm
