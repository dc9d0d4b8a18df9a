// Two ranks, two processes on two cores: round trips and one-way streams of the transports, beside what plain sockets,
// a flag and a ring in shared memory do in the same minutes.
//
//   transport [REPEATS [COLUMN]]      medians over interleaved repeats (9), of the columns with that in their names
#include <emmintrin.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/shared_memory.hpp"
#include "lamina/dist/comm/transport/socket.hpp"
#include "lamina/dist/comm/transport/tcp.hpp"
#include "tests/comm/local_rendezvous.hpp"

namespace lamina::comm {
namespace {

// One side of a measurement: sends and receives this many bytes, polling.
struct Side {
  std::function<void(std::size_t)> send, receive;
};
// Made by each of the two processes.
using MakeSide = std::function<Side(int rank)>;

double now() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

constexpr std::size_t kWalk = 16 << 20;  // sources and targets are walked through
std::byte* walk(std::size_t bytes) {
  static std::byte* const memory = [] {
    void* m = std::aligned_alloc(4096, 2 * kWalk);
    std::memset(m, 1, 2 * kWalk);
    return static_cast<std::byte*>(m);
  }();
  static std::size_t at = 0;
  at = at + bytes > kWalk ? 0 : at;
  return memory + std::exchange(at, at + bytes);
}

// Runs both sides; the time one round of `rounds` takes, by rank 0's clock.
double measure(const MakeSide& make, std::size_t bytes, int rounds, bool both_ways) {
  const auto pin = [](int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    ::sched_setaffinity(0, sizeof set, &set);
  };
  int result[2];
  if (::pipe(result) != 0) std::abort();
  pid_t pids[2];
  for (int rank = 0; rank < 2; ++rank) {
    if ((pids[rank] = ::fork()) != 0) continue;
    pin(rank);
    try {
      const Side side = make(rank);
      double start = 0;
      for (int round = -rounds / 10 - 1; round < rounds; ++round) {
        if (round == 0) start = now();
        if (rank == 0) side.send(bytes);
        if (rank == 1) side.receive(bytes);
        if (!both_ways && round != rounds - 1 && round != -1) continue;
        const std::size_t answer = both_ways ? bytes : 1;
        if (rank == 1) side.send(answer);
        if (rank == 0) side.receive(answer);
      }
      const double seconds = (now() - start) / rounds;
      if (rank == 0 && ::write(result[1], &seconds, sizeof seconds) != sizeof seconds) ::_exit(1);
    } catch (const std::exception& e) {
      fmt::print(stderr, "rank {}: {}\n", rank, e.what());
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::close(result[1]);
  double seconds = -1;
  [[maybe_unused]] const ssize_t n = ::read(result[0], &seconds, sizeof seconds);
  ::close(result[0]);
  for (const pid_t pid : pids) ::waitpid(pid, nullptr, 0);
  return seconds;
}

class Target final : public Incoming {
 public:
  explicit Target(std::size_t bytes) : memory_(walk(bytes)), left_(bytes) {}
  std::int64_t left() const noexcept override { return static_cast<std::int64_t>(left_); }
  std::span<std::byte> writable() noexcept override { return {memory_, left_}; }
  void wrote(std::size_t bytes) override {
    memory_ += bytes;
    left_ -= bytes;
  }
  void take(std::span<const std::byte> bytes) override {
    std::copy(bytes.begin(), bytes.end(), memory_);
    wrote(bytes.size());
  }

 private:
  std::byte* memory_;
  std::size_t left_;
};

MakeSide transport_side(const std::string& kind, std::size_t message) {
  std::shared_ptr<std::vector<std::unique_ptr<LocalRendezvous>>> meeting =
      std::make_shared<std::vector<std::unique_ptr<LocalRendezvous>>>(LocalRendezvous::of(2));
  return [=](int rank) {
    std::shared_ptr<Transport> transport =
        kind == "shm" ? shared_memory_transport(*(*meeting)[rank], rank, 2) : tcp_transport(*(*meeting)[rank], rank, 2);
    const int peer = 1 - rank;
    return Side{[=](std::size_t bytes) {
                  for (std::size_t done = 0; done < bytes || bytes == 0; done += message) {
                    const std::size_t n = std::min(message, bytes - done);
                    MessageHeader header;
                    header.what.op = Collective::point_to_point;
                    header.bytes = static_cast<std::int64_t>(n);
                    Outgoing out(header, {{walk(n), n}});
                    while (!transport->post(peer, out)) _mm_pause();
                    if (bytes == 0) break;
                  }
                },
                [=](std::size_t bytes) {
                  for (std::size_t done = 0; done < bytes || bytes == 0; done += message) {
                    Target target(std::min(message, bytes - done));
                    while (transport->front(peer) == nullptr) _mm_pause();
                    while (!transport->pull(peer, target)) _mm_pause();
                    if (bytes == 0) break;
                  }
                }};
  };
}

MakeSide socket_side(bool tcp) {
  int pair[2];
  if (tcp) {
    const Descriptor listener = listen_on(SocketAddress("127.0.0.1", 0));
    const SocketAddress to = SocketAddress::of(listener);
    pair[0] = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(pair[0], to.get(), to.length()) != 0) std::abort();
    pair[1] = ::accept(listener.get(), nullptr, nullptr);
    const int one = 1;
    for (const int fd : pair) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  } else if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
    std::abort();
  }
  return [a = pair[0], b = pair[1]](int rank) {
    const int fd = rank == 0 ? a : b;
    ::close(rank == 0 ? b : a);
    return Side{[=](std::size_t bytes) {
                  bytes = std::max<std::size_t>(bytes, 1);
                  for (const std::byte* at = walk(bytes); bytes > 0;) {
                    const ssize_t n = ::send(fd, at, bytes, MSG_DONTWAIT);
                    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
                  }
                },
                [=](std::size_t bytes) {
                  bytes = std::max<std::size_t>(bytes, 1);
                  for (std::byte* at = walk(bytes); bytes > 0;) {
                    const ssize_t n = ::recv(fd, at, bytes, MSG_DONTWAIT);
                    if (n > 0) at += n, bytes -= static_cast<std::size_t>(n);
                  }
                }};
  };
}

// Slots of 256 KiB, 8 of them: the fastest of the plain rings.
MakeSide ring_side() {
  constexpr std::size_t kSlot = 256 << 10, kSlots = 8;
  auto* memory = static_cast<std::byte*>(
      ::mmap(nullptr, 2 * (kSlots + 1) * kSlot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  struct Cursors {
    alignas(128) std::atomic<std::size_t> sent;
    alignas(128) std::atomic<std::size_t> taken;
  };
  return [=](int rank) {
    const auto half = [=](int sender) { return memory + static_cast<std::size_t>(sender) * (kSlots + 1) * kSlot; };
    std::byte* out = half(rank);
    std::byte* in = half(1 - rank);
    auto copy = [=](std::byte* ring, bool sending, std::size_t& k, std::size_t bytes) {
      auto* cursors = reinterpret_cast<Cursors*>(ring);
      for (std::size_t done = 0; done < bytes || bytes == 0; done += kSlot) {
        const std::size_t n = std::min(kSlot, bytes - done);
        std::byte* slot = ring + kSlot * (1 + k % kSlots);
        if (sending) {
          while (k - cursors->taken.load(std::memory_order_acquire) >= kSlots) {
          }
          std::memcpy(slot, walk(n), n);
          cursors->sent.store(++k, std::memory_order_release);
        } else {
          while (cursors->sent.load(std::memory_order_acquire) <= k) {
          }
          std::memcpy(walk(n), slot, n);
          cursors->taken.store(++k, std::memory_order_release);
        }
        if (bytes == 0) break;
      }
    };
    auto sent = std::make_shared<std::size_t>(0), taken = std::make_shared<std::size_t>(0);
    return Side{[=](std::size_t bytes) { copy(out, true, *sent, bytes); },
                [=](std::size_t bytes) { copy(in, false, *taken, bytes); }};
  };
}

int run(int repeats, const std::string& only) {
  struct Row {
    std::string name;
    std::function<MakeSide(std::size_t message)> make;
  };
  const std::vector<Row> rows = {
      {"lamina shm", [](std::size_t message) { return transport_side("shm", message); }},
      {"ring of 8 x 256 KiB", [](std::size_t) { return ring_side(); }},
      {"lamina tcp", [](std::size_t message) { return transport_side("tcp", message); }},
      {"TCP sockets, polled", [](std::size_t) { return socket_side(true); }},
      {"Unix sockets, polled", [](std::size_t) { return socket_side(false); }},
  };
  struct Column {
    std::string name;
    std::size_t bytes;
    std::size_t message;
    int rounds;
    bool both_ways;
  };
  std::vector<Column> columns = {
      {"0 B us", 0, 64, 20000, true},
      {"4 KiB us", 4096, 4096, 10000, true},
      {"64 KiB us", 65536, 65536, 1000, true},
      {"by 128 KiB GB/s", 128 << 10, 128 << 10, 2000, false},
      {"by 1 MiB GB/s", 1 << 20, 1 << 20, 256, false},
      {"by 16 MiB GB/s", 16 << 20, 16 << 20, 16, false},
  };
  std::erase_if(columns, [&](const Column& column) { return column.name.find(only) == std::string::npos; });
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> all;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const Column& column = columns[c];
        const double s = measure(rows[r].make(column.message), column.bytes, column.rounds, column.both_ways);
        all[{r, c}].push_back(column.both_ways ? s * 1e6 : static_cast<double>(column.bytes) / s / 1e9);
      }
    }
  }
  fmt::print("{:<22}", "median (best)");
  for (const Column& column : columns) fmt::print("{:>18}", column.name);
  fmt::print("\n");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    fmt::print("{:<22}", rows[r].name);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      std::vector<double>& v = all[{r, c}];
      std::sort(v.begin(), v.end());
      fmt::print("{:>18}",
                 fmt::format("{:.2f} ({:.2f})", v[v.size() / 2], columns[c].both_ways ? v.front() : v.back()));
    }
    fmt::print("\n");
  }
  return 0;
}

}  // namespace
}  // namespace lamina::comm

int main(int argc, char** argv) {
  return lamina::comm::run(argc > 1 ? std::atoi(argv[1]) : 9, argc > 2 ? argv[2] : "");
}
