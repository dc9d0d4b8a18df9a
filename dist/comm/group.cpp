#include "lamina/dist/comm/group.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/reduce.hpp"
#include "lamina/dist/comm/transport/threads.hpp"

namespace lamina::comm {

struct Group::Shared {
  std::mutex mutex;
  std::uint64_t sequence = 0;
  // Steps of a training loop repeat: the plans of the last ones are kept.
  struct Kept {
    PlanRequest request;
    std::shared_ptr<const Program> program;
  };
  std::vector<Kept> kept;
  std::size_t next = 0;
};

namespace {

constexpr std::size_t kKeptPlans = 64;

bool same(const PlanRequest& a, const PlanRequest& b) {
  return a.op == b.op && a.algorithm == b.algorithm && a.root == b.root && a.count == b.count &&
         a.segment == b.segment && a.in_place == b.in_place;
}

void check_dtype(std::string_view op, DType in, DType out) {
  if (in != out) fail<DTypeError>(op, "input of {}, output of {}", name_of(in), name_of(out));
}

void check_count(std::string_view op, std::string_view what, std::int64_t count, std::int64_t expected) {
  if (count != expected) fail<ShapeError>(op, "{} of {} elements; {} needed", what, count, expected);
}

}  // namespace

Group::Group(std::unique_ptr<Transport> transport, const GroupOptions& options)
    : rank_(transport->rank()), size_(transport->size()), options_(options), shared_(std::make_shared<Shared>()) {
  if (options_.segment_bytes < 1) {
    fail<ValueError>("group", "messages of {} bytes at most; at least 1", options_.segment_bytes);
  }
  if (options_.link.bytes_per_s <= 0) options_.link = transport->link();
  runner_ = std::make_shared<PlanRunner>(std::move(transport),
                                         PlanRunner::Options{options_.timeout, options_.spin, options_.ranks_on_host});
}

Group::~Group() = default;

std::vector<Group> Group::threads(int size, const GroupOptions& options) {
  std::vector<Group> groups;
  for (auto& transport : thread_transports(size)) groups.emplace_back(std::move(transport), options);
  return groups;
}

std::string Group::transport_name() const { return runner_->transport().name(); }

void Group::check_root(std::string_view op, int root) const {
  if (root < 0 || root >= size_) fail<ValueError>(op, "rank {} of a group of {}", root, size_);
}

std::shared_ptr<const Program> Group::program(const PlanRequest& request) {
  for (const Shared::Kept& k : shared_->kept) {
    if (same(k.request, request)) return k.program;
  }
  auto made = std::make_shared<const Program>(make_plan(request));
  if (shared_->kept.size() < kKeptPlans) {
    shared_->kept.push_back({request, made});
  } else {
    shared_->kept[shared_->next++ % kKeptPlans] = {request, made};
  }
  return made;
}

// By what each algorithm would take: latencies, bytes through one rank's link, and bytes it adds up.
Algorithm Group::algorithm_for(Collective op, std::int64_t bytes) const {
  if (size_ == 1) return algorithms_of(op).front();
  constexpr double kAddedPerSecond = 1e10;
  const double a = options_.link.latency_s, b = static_cast<double>(bytes) / options_.link.bytes_per_s;
  const double c = static_cast<double>(bytes) / kAddedPerSecond;
  const double n = size_, rounds = std::bit_width(static_cast<unsigned>(size_ - 1)), halves = (n - 1) / n;
  const double fold = std::has_single_bit(static_cast<unsigned>(size_)) ? 0 : 2 * (a + b) + c;
  const bool all_reduce = op == Collective::all_reduce;
  auto seconds = [&](Algorithm algorithm) {
    switch (algorithm) {
      case Algorithm::ring:
        if (all_reduce) return 2 * (n - 1) * a + halves * (2 * b + c);
        if (op == Collective::reduce_scatter) return (n - 1) * a + halves * (b + c);
        if (op == Collective::all_gather) return (n - 1) * (a + b);
        return (n - 1) * a + b;  // broadcast: segments follow one another
      case Algorithm::halving_doubling: return 2 * rounds * a + halves * (2 * b + c) + fold;
      case Algorithm::doubling: return rounds * (a + b + c) + fold;
      case Algorithm::tree: return all_reduce ? 2 * rounds * (a + b + c) : rounds * (a + b);
      // Messages of several peers at once: one latency, but each costs something.
      case Algorithm::direct:
        return (1 + 0.25 * (n - 2)) * a + (op == Collective::all_gather ? (n - 1) * b : halves * (b + c));
      default: return std::numeric_limits<double>::infinity();
    }
  };
  const std::vector<Algorithm> all = algorithms_of(op);
  return *std::min_element(all.begin(), all.end(), [&](Algorithm x, Algorithm y) { return seconds(x) < seconds(y); });
}

Work Group::start(Signature what, std::int64_t plan_count, ConstBuffer in, Buffer out, bool in_place) {
  const std::int64_t size = static_cast<std::int64_t>(size_of(what.dtype));
  if (what.algorithm == Algorithm::automatic) what.algorithm = algorithm_for(what.op, plan_count * size);
  const std::lock_guard lock(shared_->mutex);
  const auto made = program({.op = what.op,
                             .algorithm = what.algorithm,
                             .rank = rank_,
                             .world = size_,
                             .root = what.root,
                             .count = plan_count,
                             .segment = std::max<std::int64_t>(1, options_.segment_bytes / size),
                             .in_place = in_place});
  what.sequence = ++shared_->sequence;
  return {runner_, runner_->start(what, made, std::move(in), std::move(out))};
}

Work Group::all_reduce(Buffer data, Reduction reduction, Algorithm algorithm) {
  check_reduction(data.dtype(), reduction);
  const Signature what{Collective::all_reduce, data.dtype(), reduction, algorithm, 0, 0, data.count()};
  const std::int64_t count = data.count();
  ConstBuffer in(data);
  return start(what, count, std::move(in), std::move(data), true);
}

Work Group::all_reduce(ConstBuffer in, Buffer out, Reduction reduction, Algorithm algorithm) {
  check_reduction(in.dtype(), reduction);
  check_dtype("all_reduce", in.dtype(), out.dtype());
  check_count("all_reduce", "output", out.count(), in.count());
  const Signature what{Collective::all_reduce, in.dtype(), reduction, algorithm, 0, 0, in.count()};
  const bool in_place = same_memory(in, ConstBuffer(out));
  return start(what, what.count, std::move(in), std::move(out), in_place);
}

Work Group::reduce_scatter(ConstBuffer in, Buffer out, Reduction reduction, Algorithm algorithm) {
  check_reduction(in.dtype(), reduction);
  check_dtype("reduce_scatter", in.dtype(), out.dtype());
  check_count("reduce_scatter", "output", out.count(), block_of(in.count(), size_, rank_).count);
  const Signature what{Collective::reduce_scatter, in.dtype(), reduction, algorithm, 0, 0, in.count()};
  return start(what, what.count, std::move(in), std::move(out), false);
}

Work Group::all_gather(ConstBuffer in, Buffer out, Algorithm algorithm) {
  check_dtype("all_gather", in.dtype(), out.dtype());
  check_count("all_gather", "output", out.count(), in.count() * size_);
  const Signature what{Collective::all_gather, in.dtype(), Reduction::sum, algorithm, 0, 0, in.count()};
  return start(what, what.count, std::move(in), std::move(out), false);
}

Work Group::broadcast(Buffer data, int root, Algorithm algorithm) {
  check_root("broadcast", root);
  const Signature what{Collective::broadcast, data.dtype(), Reduction::sum, algorithm, root, 0, data.count()};
  ConstBuffer in(data);
  return start(what, what.count, std::move(in), std::move(data), true);
}

Work Group::all_to_all(ConstBuffer in, Buffer out) {
  check_dtype("all_to_all", in.dtype(), out.dtype());
  if (in.count() % size_ != 0) fail<ShapeError>("all_to_all", "{} elements for {} ranks", in.count(), size_);
  check_count("all_to_all", "output", out.count(), in.count());
  const Signature what{Collective::all_to_all, in.dtype(), Reduction::sum, Algorithm::direct, 0, 0, in.count()};
  return start(what, what.count / size_, std::move(in), std::move(out), false);
}

Work Group::gather(ConstBuffer in, Buffer out, int root) {
  check_root("gather", root);
  if (rank_ == root) {
    check_dtype("gather", in.dtype(), out.dtype());
    check_count("gather", "output", out.count(), in.count() * size_);
  } else {
    out = Buffer(nullptr, 0, in.dtype());
  }
  const Signature what{Collective::gather, in.dtype(), Reduction::sum, Algorithm::direct, root, 0, in.count()};
  return start(what, what.count, std::move(in), std::move(out), false);
}

Work Group::scatter(ConstBuffer in, Buffer out, int root) {
  check_root("scatter", root);
  if (rank_ == root) {
    check_dtype("scatter", in.dtype(), out.dtype());
    check_count("scatter", "input", in.count(), out.count() * size_);
  } else {
    in = ConstBuffer(nullptr, 0, out.dtype());
  }
  const Signature what{Collective::scatter, out.dtype(), Reduction::sum, Algorithm::direct, root, 0, out.count()};
  return start(what, what.count, std::move(in), std::move(out), false);
}

Work Group::barrier() {
  const Signature what{Collective::barrier, DType::u8, Reduction::sum, Algorithm::doubling, 0, 0, 0};
  return start(what, 0, {}, {}, true);
}

namespace {

Plan message_plan(Step::Kind kind, int peer, std::int64_t count, std::int64_t segment) {
  Plan plan;
  for (std::int64_t at = 0; at < count || (at == 0 && count == 0); at += segment) {
    Step step;
    step.kind = kind;
    step.peer = peer;
    step.own_at = step.to_at = at;
    step.count = std::min(segment, count - at);
    plan.steps.push_back(step);
  }
  return plan;
}

}  // namespace

Work Group::send(ConstBuffer data, int to, int tag) {
  check_root("send", to);
  if (to == rank_) fail<ValueError>("send", "rank {} to itself", to);
  return exchange(Step::Kind::send, to, tag, std::move(data), {});
}

Work Group::receive(Buffer data, int from, int tag) {
  check_root("receive", from);
  if (from == rank_) fail<ValueError>("receive", "rank {} from itself", from);
  return exchange(Step::Kind::receive, from, tag, {}, std::move(data));
}

Work Group::exchange(Step::Kind kind, int peer, int tag, ConstBuffer in, Buffer out) {
  const bool sends = kind == Step::Kind::send;
  const DType dtype = sends ? in.dtype() : out.dtype();
  const std::int64_t count = sends ? in.count() : out.count();
  const std::int64_t segment =
      std::max<std::int64_t>(1, options_.segment_bytes / static_cast<std::int64_t>(size_of(dtype)));
  const Signature what{Collective::point_to_point, dtype, Reduction::sum, Algorithm::direct, tag, 0, count};
  auto made = std::make_shared<const Program>(message_plan(kind, peer, count, segment));
  const std::lock_guard lock(shared_->mutex);
  return {runner_, runner_->start(what, std::move(made), std::move(in), std::move(out))};
}

std::int64_t Group::bytes_sent() const { return runner_->bytes_sent(); }

}  // namespace lamina::comm
