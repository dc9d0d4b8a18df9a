// Ranks that are processes, and what the others hear when one of them is killed, stopped, or walks out.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <random>
#include <thread>

#include "lamina/dist/comm/group.hpp"
#include "tests/comm/transport_worlds.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

constexpr int kRanks = 4;
constexpr auto kTimeout = 1s;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Time::now().time_since_epoch()).count();
}

/// What a rank that was told of an error writes into the pipe; whole, being shorter than PIPE_BUF.
struct Heard {
  int rank = -1;
  int kind = 0;  // 1: PeerLost, 2: Timeout, 3: anything else
  std::int64_t at_ns = 0;
  char text[256] = "";
};

// Four processes that all-reduce vectors of changing sizes until something ends their group.
class Fleet {
 public:
  explicit Fleet(const std::string& kind) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("no pipe");
    std::vector<std::unique_ptr<LocalRendezvous>> meeting = LocalRendezvous::of(kRanks);
    std::fflush(nullptr);
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t pid = ::fork();
      if (pid != 0) {
        pids_.push_back(pid);
        continue;
      }
      std::unique_ptr<LocalRendezvous> mine = std::move(meeting[static_cast<std::size_t>(rank)]);
      meeting.clear();
      ::close(pipe_[0]);
      Heard heard;
      try {
        heard = serve(kind, *mine, rank);
      } catch (const std::exception& e) {
        heard.kind = 3;
        std::snprintf(heard.text, sizeof heard.text, "before it began: %s", e.what());
      }
      (void)!::write(pipe_[1], &heard, sizeof heard);
      ::_exit(0);
    }
    ::close(pipe_[1]);
    // All are there once the first has said so.
    std::this_thread::sleep_for(30ms);
  }
  ~Fleet() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::kill(pid, SIGCONT);
      while (::waitpid(pid, nullptr, 0) < 0) {
      }
    }
    ::close(pipe_[0]);
  }

  void signal(int rank, int number) { ::kill(pids_[static_cast<std::size_t>(rank)], number); }

  /// What `count` ranks heard, within the time.
  std::map<int, Heard> listen(std::size_t count, std::chrono::milliseconds within) {
    std::map<int, Heard> all;
    const auto end = Time::now() + within;
    while (all.size() < count && Time::now() < end) {
      pollfd p{pipe_[0], POLLIN, 0};
      Heard heard;
      if (::poll(&p, 1, 50) > 0 && ::read(pipe_[0], &heard, sizeof heard) == sizeof heard) all[heard.rank] = heard;
    }
    return all;
  }

 private:
  static Heard serve(const std::string& kind, Rendezvous& meeting, int rank) {
    Heard heard;
    heard.rank = rank;
    Group group(make_transport(kind, meeting, rank, kRanks), {.timeout = kTimeout});
    std::vector<float> data(1 << 20, 1.0f);
    auto hear = [&](int what, const char* text) {
      heard.kind = what;
      heard.at_ns = now_ns();
      std::snprintf(heard.text, sizeof heard.text, "%s", text);
    };
    try {
      for (std::size_t round = 0;; ++round) {
        const std::size_t count = std::size_t{1} << (4 * (round % 6));
        group.all_reduce(std::span(data).first(std::min(count, data.size()))).wait();
      }
    } catch (const PeerLost& e) {
      hear(1, e.what());
    } catch (const Timeout& e) {
      hear(2, e.what());
    } catch (const std::exception& e) {
      hear(3, e.what());
    }
    return heard;
  }

  int pipe_[2] = {-1, -1};
  std::vector<pid_t> pids_;
};

class Faults : public ::testing::TestWithParam<std::string> {
 protected:
  static int rounds(int quick) {
    const char* many = std::getenv("LAMINA_SOAK");
    return many != nullptr ? std::max(quick, std::atoi(many)) : quick;
  }
  std::mt19937 random_{11};
};

TEST_P(Faults, KillingARankIsPeerLostOnAllOthers) {
  for (int round = 0; round < rounds(6); ++round) {
    Fleet fleet(GetParam());
    const int victim = static_cast<int>(random_() % kRanks);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60000));
    const std::int64_t at = now_ns();
    fleet.signal(victim, SIGKILL);
    const auto heard = fleet.listen(kRanks - 1, 6s);
    ASSERT_EQ(heard.size(), kRanks - 1u) << "round " << round;
    for (const auto& [rank, h] : heard) {
      EXPECT_EQ(h.kind, 1) << h.text;
      EXPECT_NE(std::string(h.text).find(fmt::format("rank {}", victim)), std::string::npos) << h.text;
      EXPECT_LT(static_cast<double>(h.at_ns - at) * 1e-9, 2.0) << h.text;
    }
  }
}

TEST_P(Faults, StoppingARankIsATimeoutThatNamesIt) {
  for (int round = 0; round < rounds(2); ++round) {
    Fleet fleet(GetParam());
    const int victim = static_cast<int>(random_() % kRanks);
    std::this_thread::sleep_for(std::chrono::microseconds(random_() % 60000));
    const std::int64_t at = now_ns();
    fleet.signal(victim, SIGSTOP);
    const auto heard = fleet.listen(kRanks - 1, 8s);
    ASSERT_EQ(heard.size(), kRanks - 1u) << "round " << round;
    for (const auto& [rank, h] : heard) {
      EXPECT_EQ(h.kind, 2) << h.text;
      EXPECT_NE(std::string(h.text).find(fmt::format("rank {} does not answer", victim)), std::string::npos) << h.text;
      EXPECT_LT(static_cast<double>(h.at_ns - at) * 1e-9, 2.0) << h.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Worlds, Faults, ::testing::Values("shm", "tcp"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lamina::comm
