#include "lamina/dist/comm/plan_runner.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>

#include "lamina/core/error.hpp"
#include "lamina/core/thread_pool.hpp"

namespace lamina::comm {

namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(2);  // a polling waiter looks at the control plane
constexpr auto kLongestSleep = std::chrono::milliseconds(100);
constexpr auto kGrace = std::chrono::milliseconds(400);      // for answers after the deadline
constexpr int kYields = 64;                                  // of a waiter without a processor of its own
constexpr auto kLongYield = std::chrono::microseconds(150);  // others than ranks compute here
constexpr std::int64_t kSmall = 16384;                       // bytes of a work that may end in start()
constexpr auto kPatience = std::chrono::microseconds(4);     // for it
constexpr auto kParked = std::chrono::milliseconds(20);      // the thread looks again whether anybody waits

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

[[noreturn]] void throw_abort(const Abort& why) {
  switch (why.kind) {
    case Abort::Kind::peer_lost: throw PeerLost(why.text);
    case Abort::Kind::timeout: throw Timeout(why.text);
    case Abort::Kind::mismatch: throw Mismatch(why.text);
    case Abort::Kind::other: break;
  }
  throw Error(why.text);
}

// The counter of `peer` in a list of few peers.
std::int32_t& count_of(std::span<const std::int32_t> peers, std::vector<std::int32_t>& counts, int peer) {
  const auto it = std::find(peers.begin(), peers.end(), peer);
  return counts[static_cast<std::size_t>(it - peers.begin())];
}

}  // namespace

PlanRunner::PlanRunner(std::unique_ptr<Transport> transport, const Options& options)
    : transport_(std::move(transport)),
      options_(options),
      queues_(static_cast<std::size_t>(transport_->size())),
      posted_(static_cast<std::size_t>(transport_->size())) {
  if (options_.timeout <= std::chrono::milliseconds(0)) {
    fail<ValueError>("group", "a timeout of {} ms; more than 0", options_.timeout.count());
  }
  if (options_.ranks_on_host <= 0) options_.ranks_on_host = transport_->size();
  if (options_.spin.count() < 0) {
    options_.spin = std::chrono::microseconds(options_.ranks_on_host <= available_cpus() ? 200 : 0);
  }
  if (transport_->size() > 1) thread_ = std::thread([this] { run_thread(); });
}

PlanRunner::~PlanRunner() {
  {
    std::unique_lock lock(mutex_);
    stop_ = true;
    // What nobody waits for any more is given up; others must not read its memory.
    if (!works_.empty()) {
      end({Abort::Kind::peer_lost, transport_->rank(),
           fmt::format("group: rank {} destroyed its group with {} unfinished", transport_->rank(),
                       to_string(works_.front()->what))},
          true);
    }
  }
  parked_cv_.notify_all();
  transport_->wake();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<WorkState> PlanRunner::start(const Signature& what, std::shared_ptr<const Program> program,
                                             ConstBuffer input, Buffer output) {
  auto work = std::make_shared<WorkState>();
  work->what = what;
  work->program = std::move(program);
  const Plan& plan = work->program->plan;
  const DType dtype = what.dtype;
  if (plan.scratch > 0) {
    work->scratch.resize(static_cast<std::size_t>(plan.scratch) * size_of(dtype));
    work->to[static_cast<std::size_t>(Space::scratch)] = Buffer(work->scratch.data(), plan.scratch, dtype);
  }
  work->to[static_cast<std::size_t>(Space::output)] = std::move(output);
  work->own[static_cast<std::size_t>(Space::input)] = std::move(input);
  for (const Space space : {Space::output, Space::scratch}) {
    const auto s = static_cast<std::size_t>(space);
    work->own[s] = work->to[s];
  }
  work->left_to = work->program->sends_to;
  work->left_from = work->program->arrivals_from;
  work->tickets.resize(work->program->sends.size());
  work->times.issued = Clock::now();

  const std::int64_t payload = what.count * static_cast<std::int64_t>(size_of(dtype));
  bool kick = false;
  {
    const std::lock_guard lock(mutex_);
    if (broken_) std::rethrow_exception(broken_);
    for (const std::int32_t peer : work->program->send_peers) {
      queues_[static_cast<std::size_t>(peer)].sending.push_back(work.get());
    }
    for (const std::int32_t peer : work->program->arrival_peers) {
      queues_[static_cast<std::size_t>(peer)].receiving.push_back(work.get());
    }
    works_.push_back(work);
    sequence_ = std::max(sequence_, what.sequence);
    // What can be done at once is; the rest waits for others, whose messages ring.
    if (!driving_) {
      progress();
      // A small one may be over before its caller could wait for it, where the others are as far.
      if (options_.spin.count() > 0 && payload <= kSmall) {
        const Clock::time_point patience = work->times.issued + kPatience;
        while (!work->finished && !broken_ && Clock::now() < patience) progress();
      }
      if (waiters_ == 0 && !works_.empty()) {
        transport_->arm();
        progress();
      }
      kick = !works_.empty() && (parked_ || transport_->next_change() != Clock::time_point::max());
    } else {
      kick = dozing_;
    }
  }
  if (kick) {
    parked_cv_.notify_one();
    transport_->wake();
  }
  return work;
}

bool PlanRunner::progress() {
  bool moved = false;
  try {
    for (bool again = true; again && !works_.empty();) {
      again = false;
      for (std::size_t i = 0; i < works_.size(); ++i) again = advance(*works_[i]) || again;
      while (!works_.empty() && works_.front()->finished) works_.pop_front();
      if (again) {
        std::erase_if(works_, [](const auto& w) { return w->finished; });
        moved = true;
      }
    }
  } catch (const PeerLost& e) {
    // A peer that gave up has said why.
    const std::optional<Abort> why = transport_->check(my_state());
    end(why ? *why : Abort{Abort::Kind::peer_lost, -1, e.what()}, true);
    moved = true;
  } catch (const Mismatch& e) {
    end({Abort::Kind::mismatch, transport_->rank(), e.what()}, true);
    moved = true;
  } catch (const std::exception& e) {
    end({Abort::Kind::other, transport_->rank(), e.what()}, true);
    moved = true;
  }
  return moved;
}

bool PlanRunner::advance(WorkState& work) {
  if (work.finished) return false;
  bool moved = false;
  // Each stream may free the other.
  for (bool again = true; again;) {
    again = advance_sends(work);
    again = advance_arrivals(work) || again;
    moved = moved || again;
  }
  note_taken(work);
  const Program& p = *work.program;
  if (work.sent == p.sends.size() && work.arrived == p.arrivals.size() && work.taken == p.sends.size()) {
    finish(work);
    return true;
  }
  return moved;
}

bool PlanRunner::advance_sends(WorkState& work) {
  const Program& p = *work.program;
  bool moved = false;
  while (work.sent < p.sends.size()) {
    const Step& step = p.plan.steps[static_cast<std::size_t>(p.sends[work.sent])];
    const auto peer = static_cast<std::size_t>(step.peer);
    auto& queue = queues_[peer].sending;
    if (!work.posting) {
      if (static_cast<std::size_t>(step.after) > work.arrived || queue.front() != &work) break;
      const ConstBuffer& own = work.own[static_cast<std::size_t>(step.own)];
      std::vector<std::span<const std::byte>> pieces;
      for (std::int64_t at = 0; at < step.count;) {
        pieces.push_back(own.run(step.own_at + at, step.count - at));
        at += static_cast<std::int64_t>(pieces.back().size() / own.element());
      }
      work.outgoing =
          Outgoing({work.what, step.count * static_cast<std::int64_t>(size_of(work.what.dtype)), 0}, std::move(pieces));
      work.posting = true;
      if (work.sent == 0 && work.arrived == 0) work.times.started = Clock::now();
    }
    const std::int64_t before = work.outgoing.left();
    if (!transport_->post(step.peer, work.outgoing)) return moved || work.outgoing.left() != before;
    work.posting = false;
    work.tickets[work.sent] = ++posted_[peer];
    ++work.sent;
    const std::int64_t bytes = work.outgoing.header().bytes;
    work.times.bytes_sent += bytes;
    bytes_sent_ += bytes;
    if (--count_of(p.send_peers, work.left_to, step.peer) == 0) queue.pop_front();
    moved = true;
  }
  return moved;
}

bool PlanRunner::advance_arrivals(WorkState& work) {
  const Program& p = *work.program;
  bool moved = false;
  while (work.arrived < p.arrivals.size()) {
    const Step& step = p.plan.steps[static_cast<std::size_t>(p.arrivals[work.arrived])];
    if (!work.pulling) {
      if (static_cast<std::size_t>(step.after) > work.taken) {
        note_taken(work);
        if (static_cast<std::size_t>(step.after) > work.taken) break;
      }
      if (step.kind == Step::Kind::copy) {
        const ConstBuffer& own = work.own[static_cast<std::size_t>(step.own)];
        Step into = step;
        into.kind = Step::Kind::receive;
        Delivery local(into, own, work.to[static_cast<std::size_t>(step.to)], Reduction::sum, 1);
        for (std::int64_t at = 0; at < step.count;) {
          const auto run = own.run(step.own_at + at, step.count - at);
          local.take(run);
          at += static_cast<std::int64_t>(run.size() / own.element());
        }
        ++work.arrived;
        moved = true;
        continue;
      }
      auto& queue = queues_[static_cast<std::size_t>(step.peer)].receiving;
      if (queue.front() != &work) break;
      const MessageHeader* header = transport_->front(step.peer);
      if (header == nullptr) break;
      const std::int64_t bytes = step.count * static_cast<std::int64_t>(size_of(work.what.dtype));
      if (!(header->what == work.what) || header->bytes != bytes) {
        if (header->what == work.what) {
          fail<Mismatch>("group", "rank {} sent {} bytes where rank {} expects {}, both in {}", step.peer,
                         header->bytes, transport_->rank(), bytes, to_string(work.what));
        }
        fail<Mismatch>("group", "rank {} is in {}, rank {} in {}", step.peer, to_string(header->what),
                       transport_->rank(), to_string(work.what));
      }
      const bool mean = work.what.reduction == Reduction::mean && step.kind == Step::Kind::reduce;
      work.delivery =
          Delivery(step, work.own[static_cast<std::size_t>(step.own)], work.to[static_cast<std::size_t>(step.to)],
                   work.what.reduction, mean ? transport_->size() : 1);
      work.pulling = true;
      if (work.sent == 0 && work.arrived == 0 && !work.posting) work.times.started = Clock::now();
    }
    const std::int64_t before = work.delivery.left();
    if (!transport_->pull(step.peer, work.delivery)) return moved || work.delivery.left() != before;
    work.pulling = false;
    ++work.arrived;
    if (--count_of(p.arrival_peers, work.left_from, step.peer) == 0) {
      queues_[static_cast<std::size_t>(step.peer)].receiving.pop_front();
    }
    moved = true;
  }
  return moved;
}

void PlanRunner::note_taken(WorkState& work) {
  while (work.taken < work.sent) {
    const Step& step = work.program->plan.steps[static_cast<std::size_t>(work.program->sends[work.taken])];
    if (transport_->taken(step.peer) < work.tickets[work.taken]) break;
    ++work.taken;
  }
}

void PlanRunner::finish(WorkState& work) {
  work.finished = true;
  work.times.finished = Clock::now();
  // The memory is the caller's again.
  work.own = {};
  work.to = {};
  if (!driving_ || waiters_ > 1) changed_.notify_all();
}

const WorkState* PlanRunner::blocked() const {
  for (const auto& work : works_) {
    if (!work->finished) return work.get();
  }
  return nullptr;
}

int PlanRunner::waits_for(const WorkState& work) const {
  const Program& p = *work.program;
  if (work.arrived < p.arrivals.size()) {
    const Step& step = p.plan.steps[static_cast<std::size_t>(p.arrivals[work.arrived])];
    if (step.kind != Step::Kind::copy && static_cast<std::size_t>(step.after) <= work.taken) return step.peer;
  }
  const std::size_t send = std::min(work.sent, work.taken);
  return send < p.sends.size() ? p.plan.steps[static_cast<std::size_t>(p.sends[send])].peer : -1;
}

RankState PlanRunner::my_state() const {
  RankState state;
  const WorkState* work = blocked();
  state.doing = work == nullptr ? "nothing" : to_string(work->what);
  if (work != nullptr) state.waits_for = waits_for(*work);
  return state;
}

void PlanRunner::look_around() {
  if (broken_) return;
  const Clock::time_point now = Clock::now();
  looked_ = now;
  if (const std::optional<Abort> why = transport_->check(my_state())) {
    end(*why, true);
    return;
  }
  const WorkState* work = blocked();
  if (work == nullptr) {
    question_until_ = {};
    return;
  }
  try {
    look_for_strangers();
  } catch (const Mismatch& e) {
    return end({Abort::Kind::mismatch, transport_->rank(), e.what()}, true);
  } catch (const PeerLost& e) {
    return end({Abort::Kind::peer_lost, -1, e.what()}, true);
  }
  // Left in good order, but still needed.
  const int peer = waits_for(*work);
  if (peer >= 0 && work->arrived < work->program->arrivals.size() && transport_->left(peer)) {
    end({Abort::Kind::peer_lost, peer,
         error_message("group", fmt::format("rank {} left the group, which rank {} needs for {}", peer,
                                            transport_->rank(), to_string(work->what)))},
        true);
    return;
  }
  if (now < work->times.issued + options_.timeout) {
    question_until_ = {};
  } else if (question_until_ == Clock::time_point{}) {
    question_until_ = now + kGrace;
    transport_->ask();
  } else {
    question(*works_.front());
  }
}

void PlanRunner::look_for_strangers() {
  for (int peer = 0; peer < transport_->size(); ++peer) {
    const MessageHeader* header = peer == transport_->rank() ? nullptr : transport_->front(peer);
    if (header == nullptr) continue;
    const auto& queue = queues_[static_cast<std::size_t>(peer)].receiving;
    const WorkState* mine = nullptr;
    if (!queue.empty()) {
      if (header->what == queue.front()->what) continue;
      mine = queue.front();
    } else if (header->what.sequence != 0 && header->what.sequence <= sequence_) {
      // This rank is in that collective, or past it, and nothing was to come from there.
      const auto it = std::find_if(works_.begin(), works_.end(),
                                   [&](const auto& w) { return w->what.sequence == header->what.sequence; });
      mine = it != works_.end() ? it->get() : blocked();
    }
    if (mine != nullptr) {
      fail<Mismatch>("group", "rank {} is in {}, rank {} in {}", peer, to_string(header->what), transport_->rank(),
                     to_string(mine->what));
    }
  }
}

// Past the deadline, and everybody has been asked: names the rank all the others wait for, directly or not.
void PlanRunner::question(WorkState& late) {
  const std::span<const RankState> answers = transport_->answers();
  const bool in_time = Clock::now() < question_until_;
  std::string silent, waits;
  int first_silent = -1;
  for (int rank = 0; rank < transport_->size(); ++rank) {
    if (rank == transport_->rank()) continue;
    const RankState& state = answers[static_cast<std::size_t>(rank)];
    if (!state.answered) {
      if (in_time) return;
      if (first_silent < 0) first_silent = rank;
      silent += fmt::format("{}{}", silent.empty() ? "" : ", ", rank);
    } else if (state.waits_for >= 0) {
      waits += fmt::format("; rank {} waits for {} in {}", rank, state.waits_for, state.doing);
    } else {
      waits += fmt::format("; rank {} does {}", rank, state.doing);
    }
  }
  int culprit = first_silent;
  if (culprit < 0) {
    // Along who waits for whom, to one that waits for nobody or is met again.
    culprit = waits_for(late);
    for (int hops = 0; hops < transport_->size() && culprit >= 0; ++hops) {
      const int next =
          culprit == transport_->rank() ? waits_for(late) : answers[static_cast<std::size_t>(culprit)].waits_for;
      if (next < 0) break;
      culprit = next;
    }
  }
  const auto seconds = std::chrono::duration<double>(options_.timeout).count();
  const std::string about =
      first_silent >= 0 ? fmt::format("rank {} does not answer", silent) : fmt::format("rank {} is late", culprit);
  end({Abort::Kind::timeout, culprit,
       error_message("group", fmt::format("{}: {} not done in {:g} s; rank {} waits for {}{}", about,
                                          to_string(late.what), seconds, transport_->rank(), waits_for(late), waits))},
      true);
}

void PlanRunner::end(const Abort& why, bool tell) {
  if (broken_) return;
  try {
    throw_abort(why);
  } catch (...) {
    broken_ = std::current_exception();
  }
  if (tell) transport_->abort(why);
  for (const auto& work : works_) {
    work->error = broken_;
    finish(*work);
  }
  works_.clear();
  for (Queues& q : queues_) {
    q.sending.clear();
    q.receiving.clear();
  }
  changed_.notify_all();
}

Clock::time_point PlanRunner::wake_time() {
  if (works_.empty()) return Clock::time_point::max();
  return std::min(Clock::now() + kLongestSleep, transport_->next_change());
}

bool PlanRunner::done(const WorkState& work) {
  const std::lock_guard lock(mutex_);
  if (!work.finished && !driving_) progress();
  return work.finished;
}

WorkTimes PlanRunner::times(const WorkState& work) {
  const std::lock_guard lock(mutex_);
  if (!work.finished) fail<ValueError>("work", "{} is not done", to_string(work.what));
  return work.times;
}

std::int64_t PlanRunner::bytes_sent() const {
  const std::lock_guard lock(mutex_);
  return bytes_sent_;
}

void PlanRunner::wait(WorkState& work) {
  std::unique_lock lock(mutex_);
  if (!work.finished) {
    ++waiters_;
    while (!work.finished) {
      if (driving_) {
        changed_.wait(lock);
        continue;
      }
      driving_ = true;
      drive(lock, work);
      driving_ = false;
      if (waiters_ > 1) changed_.notify_all();
    }
    --waiters_;
    if (waiters_ == 0 && !works_.empty()) {
      // From now on what arrives rings for the thread. What came before is looked at here. With nothing to do it need
      // not ring: a peer that is early would pay for it.
      transport_->arm();
      progress();
      if (parked_) parked_cv_.notify_one();
      if (!works_.empty() && transport_->next_change() != Clock::time_point::max()) transport_->wake();
    }
  }
  if (work.error) std::rethrow_exception(work.error);
}

void PlanRunner::drive(std::unique_lock<std::mutex>& lock, const WorkState& work) {
  transport_->disarm();
  Clock::time_point moved_at = Clock::now();
  bool crowded = false;
  int turns = 0;
  while (!work.finished) {
    if (progress()) {
      turns = 0;
      continue;
    }
    ++turns;
    lock.unlock();  // others may issue works
    if (turns <= 64 && options_.spin.count() > 0) {
      pause();
      lock.lock();
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (turns == 65) moved_at = now;
    if (now - moved_at < options_.spin) {
      for (int i = 0; i < 8; ++i) pause();
      lock.lock();
      if (now - looked_ >= kLookEvery) look_around();
      continue;
    }
    if (options_.spin.count() == 0 && turns < kYields && !crowded) {
      // Ranks that share a processor hand it on. If it comes back late, others compute on it: they are not waited for.
      sched_yield();
      crowded = Clock::now() - now > kLongYield;
      lock.lock();
      if (now - looked_ >= kLookEvery) look_around();
      continue;
    }
    lock.lock();
    look_around();
    if (work.finished) break;
    // One sleeps: the thread makes room. Until it has it may take the bell for itself.
    while (sleeping_ && !work.finished) {
      lock.unlock();
      transport_->wake();
      lock.lock();
      if (sleeping_) changed_.wait_for(lock, std::chrono::milliseconds(1));
    }
    transport_->arm();
    if (work.finished || progress()) {
      transport_->disarm();
      continue;
    }
    const Clock::time_point until = wake_time();
    dozing_ = true;
    lock.unlock();
    transport_->sleep(until);
    lock.lock();
    dozing_ = false;
    transport_->disarm();
    turns = 0;
  }
}

void PlanRunner::run_thread() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (waiters_ > 0) {
      parked_ = true;
      parked_cv_.wait_for(lock, kParked, [&] { return stop_ || (waiters_ == 0 && !works_.empty()); });
      parked_ = false;
      if (waiters_ > 0) continue;
    }
    transport_->arm();
    progress();
    look_around();
    if (stop_ || waiters_ > 0) continue;
    Clock::time_point until = wake_time();
    sleeping_ = true;
    lock.unlock();
    transport_->sleep(until);
    lock.lock();
    sleeping_ = false;
    if (waiters_ > 0) changed_.notify_all();
  }
}

}  // namespace lamina::comm
