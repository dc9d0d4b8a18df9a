// What every transport between processes has to do, over shared memory and TCP, for ranks that are threads and ranks
// that are processes.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

#include "lamina/dist/comm/transport/socket.hpp"
#include "tests/comm/traffic.hpp"
#include "tests/comm/transport_worlds.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;

struct Kind {
  const char* transport;
  bool processes;
};

// Nobody says goodbye before all are done.
void finish_together(Transport& transport) { Traffic(transport, 99, 1, 0).run(0); }

class Transports : public testing::TestWithParam<Kind> {
 protected:
  // Every rank has to come to its end without throwing.
  void run(int size, const WorldOptions& options, const RankBody& body) {
    if (!GetParam().processes) return run_threads(GetParam().transport, size, options, body);
    Processes ranks(GetParam().transport, size, options, body);
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
  }
};

TEST_P(Transports, CarryMessagesOfAllSizesBothWaysAtOnce) {
  for (const int size : {1, 2, 3, 5}) {
    for (const std::size_t ring : {std::size_t{1024}, std::size_t{1} << 16, std::size_t{1} << 20}) {
      WorldOptions options;
      options.ring_bytes = ring;
      options.connections = ring == 1024 ? 3 : 1;
      run(size, options, [&](Transport& transport) {
        EXPECT_EQ(transport.size(), size);
        EXPECT_EQ(transport.name(), GetParam().transport);
        Traffic(transport, ring, 20, ring == 1024 ? 30'000 : 300'000).run(100);
      });
    }
  }
}

// Without polling: every step forward is a doorbell, for messages and for room.
TEST_P(Transports, LoseNoWakeUp) {
  WorldOptions options;
  options.ring_bytes = 4096;
  run(3, options, [](Transport& transport) {
    Traffic(transport, 5, 400, 20'000).run(0);
    Traffic(transport, 6, 8, 3'000'000).run(0);  // more than sockets hold
  });
}

TEST_P(Transports, WakeSleepersInAThousandRounds) {
  run(2, {}, [](Transport& transport) {
    const int peer = 1 - transport.rank();
    Dice dice(transport.rank());
    for (std::uint64_t round = 0; round < 1000; ++round) {
      for (std::int64_t spin = dice.below(3000); spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      bool sent = false, received = false;
      TestMessage message(transport.rank(), peer, round, 8, 1);
      TestSink sink(8, TestSink::Way::written, 0);
      drive(
          transport, static_cast<int>(dice.below(3)),
          [&] {
            // Rank 1 answers.
            const bool may_send = transport.rank() == 0 || received;
            if (!sent && may_send) return sent = transport.post(peer, message.outgoing);
            if (!received) return received = transport.pull(peer, sink);
            return false;
          },
          [&] { return sent && received; });
      if (!sink.is_right(peer, transport.rank(), round)) throw std::runtime_error("wrong bytes");
    }
  });
}

TEST_P(Transports, WakeFromAnotherThread) {
  run(2, {}, [](Transport& transport) {
    std::mutex mutex;
    std::atomic<int> asked{0}, woken{0};
    std::thread waker([&] {
      for (int round = 1; round <= 1000; ++round) {
        {
          const std::lock_guard lock(mutex);
          asked = round;
        }
        transport.wake();
        for (int seen = woken; seen < round; seen = woken) woken.wait(seen);
      }
    });
    bool timed_out = false;
    for (int round = 1; round <= 1000; ++round) {
      std::unique_lock lock(mutex);
      while (asked < round && !timed_out) {
        transport.arm();
        const auto until = Clock::now() + 10s;
        lock.unlock();
        transport.sleep(until);
        lock.lock();
        transport.disarm();
        timed_out = Clock::now() >= until;
      }
      woken = timed_out ? 1000 : round;
      woken.notify_one();
    }
    waker.join();
    if (timed_out) throw std::runtime_error("wake() did not end sleep()");
  });
}

// Bytes that nobody wants yet, and old doorbells, must not make a rank spin.
TEST_P(Transports, SleepThoughUnwantedMessagesLieThere) {
  run(2, {}, [](Transport& transport) {
    const int peer = 1 - transport.rank();
    TestMessage message(transport.rank(), peer, 0, 100'000, 1);
    drive(
        transport, 0, [&] { return transport.post(peer, message.outgoing); },
        [&] { return transport.taken(peer) == 1; });
    bool came = false;
    drive(
        transport, 0, [&] { return came = transport.front(peer) != nullptr; }, [&] { return came; });
    std::this_thread::sleep_for(50ms);  // all of it is there
    int sleeps = 0;
    const auto until = Clock::now() + 200ms;
    while (Clock::now() < until) {
      transport.arm();
      transport.sleep(until);
      transport.disarm();
      ++sleeps;
    }
    TestSink sink(100'000, TestSink::Way::written, 0);
    drive(
        transport, 0, [&] { return transport.pull(peer, sink); }, [&] { return sink.left() == 0; });
    finish_together(transport);
    if (sleeps > 5) throw std::runtime_error("slept " + std::to_string(sleeps) + " times in 200 ms");
  });
}

TEST_P(Transports, DeliverWhatWasSentBeforeAGoodbye) {
  run(3, {}, [](Transport& transport) {
    constexpr std::int64_t kBytes = 300'000;
    if (transport.rank() == 1) {
      for (const int peer : {0, 2}) {
        TestMessage message(1, peer, 0, kBytes, 3);
        drive(
            transport, 10, [&] { return transport.post(peer, message.outgoing); },
            [&] { return transport.taken(peer) == 1; });
      }
      return;
    }
    std::this_thread::sleep_for(20ms);
    EXPECT_FALSE(transport.check({}));
    EXPECT_FALSE(transport.left(1));
    TestSink sink(kBytes, TestSink::Way::mixed, 1);
    drive(
        transport, 10, [&] { return transport.pull(1, sink); }, [&] { return sink.left() == 0; });
    if (!sink.is_right(1, transport.rank(), 0)) throw std::runtime_error("wrong bytes");
    const auto until = Clock::now() + 5s;
    while (!transport.left(1)) {
      if (Clock::now() > until) throw std::runtime_error("the goodbye did not come");
      if (const auto why = transport.check({})) throw std::runtime_error("a goodbye taken for a loss: " + why->text);
    }
    TestMessage late(transport.rank(), 1, 0, 1, 1);
    EXPECT_THROW(transport.post(1, late.outgoing), PeerLost);
    std::this_thread::sleep_for(600ms);  // longer than the doubt about broken connections
    if (const auto why = transport.check({})) throw std::runtime_error("a goodbye taken for a loss: " + why->text);
  });
}

TEST_P(Transports, TellEverybodyOfAnAbort) {
  run(4, {}, [](Transport& transport) {
    const Abort why{Abort::Kind::mismatch, 3, "group: rank 3 is in another world " + std::string(10'000, '.')};
    if (transport.rank() == 2) transport.abort(why);
    const auto until = Clock::now() + 10s;
    while (transport.rank() != 2) {
      transport.arm();
      transport.sleep(until);
      transport.disarm();
      if (const auto got = transport.check({})) {
        EXPECT_EQ(got->kind, why.kind);
        EXPECT_EQ(got->rank, 3);
        EXPECT_EQ(got->text, why.text.substr(0, got->text.size()));
        EXPECT_GT(got->text.size(), 1000u);
        if (testing::Test::HasFailure()) throw std::runtime_error("another abort");
        break;
      }
      if (Clock::now() > until) throw std::runtime_error("no abort came");
    }
  });
}

TEST_P(Transports, LeaveNothingBehind) {
  const auto found = [] {
    std::set<std::string> names;
    for (const char* folder : {"/proc/self/fd", "/dev/shm"}) {
      for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path());
    }
    std::ifstream sockets("/proc/net/unix");
    for (std::string line; std::getline(sockets, line);) {
      if (const auto at = line.find("@lamina-"); at != std::string::npos) names.insert(line.substr(at));
    }
    return names;
  };
  const std::set<std::string> before = found();
  run(3, {}, [](Transport& transport) { Traffic(transport, 1, 3, 1000).run(10); });
  // What other tests of the same minute made goes by itself.
  std::set<std::string> left = found();
  std::erase_if(left, [&](const std::string& name) { return before.count(name) > 0; });
  for (const auto until = Clock::now() + 20s; !left.empty() && Clock::now() < until;) {
    std::this_thread::sleep_for(10ms);
    const std::set<std::string> now = found();
    std::erase_if(left, [&](const std::string& name) { return now.count(name) == 0; });
  }
  for (const std::string& name : left) ADD_FAILURE() << name << " is left";
}

INSTANTIATE_TEST_SUITE_P(All, Transports,
                         testing::Values(Kind{"shm", false}, Kind{"shm", true}, Kind{"tcp", false}, Kind{"tcp", true}),
                         [](const auto& info) {
                           return std::string(info.param.transport) +
                                  (info.param.processes ? "_processes" : "_threads");
                         });

// ---- what only processes can suffer ----

class ProcessTransports : public testing::TestWithParam<std::string> {
 protected:
  // Shared with the ranks.
  struct Board {
    std::atomic<std::int64_t> died_ns;
    std::atomic<int> ready;
  };
  Board& board_ =
      *static_cast<Board*>(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  void TearDown() override { ::munmap(&board_, sizeof(Board)); }

  static std::int64_t now_ns() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }
  void meet(int size) {
    ++board_.ready;
    while (board_.ready < size) std::this_thread::yield();
  }

  // Rank 1 of 4 dies so; the others must know within 100 ms.
  void expect_loss(const std::function<void()>& die) {
    Processes ranks(GetParam(), 4, {}, [&](Transport& transport) {
      Traffic(transport, 3, 5, 50'000).run(100);
      meet(4);
      if (transport.rank() == 1) {
        TestMessage message(1, 2, 0, 3'000'000, 1);  // in the middle of one
        transport.post(2, message.outgoing);
        board_.died_ns = now_ns();
        die();
      }
      const auto until = Clock::now() + 5s;
      std::optional<Abort> why;
      while (!why && Clock::now() < until) {
        transport.arm();
        transport.sleep(until);
        transport.disarm();
        why = transport.check({});
      }
      if (!why) throw std::runtime_error("no loss");
      const double ms = static_cast<double>(now_ns() - board_.died_ns) / 1e6;
      if (why->kind != Abort::Kind::peer_lost || why->rank != 1 || why->text.find(GetParam() + ": rank 1 (") != 0 ||
          ms > 100) {
        throw std::runtime_error(why->text + " after ms: " + std::to_string(ms));
      }
      TestMessage message(transport.rank(), 1, 0, 1, 1);
      try {
        transport.post(1, message.outgoing);
      } catch (const PeerLost&) {
        meet(7);  // nobody says goodbye before all have seen it
        return;
      }
      throw std::runtime_error("posted to a rank that is lost");
    });
    for (const int rank : {0, 2, 3}) EXPECT_EQ(ranks.wait(rank), 0) << "rank " << rank;
  }
};

TEST_P(ProcessTransports, NoticeAKilledRank) {
  expect_loss([] { ::raise(SIGKILL); });
}

TEST_P(ProcessTransports, NoticeARankThatExitsWithoutAGoodbye) {
  expect_loss([] { ::_exit(0); });
}

TEST_P(ProcessTransports, NoticeResetConnections) {
  expect_loss([] {
    const linger at_once = {1, 0};
    for (int fd = 3; fd < 256; ++fd) ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::raise(SIGKILL);
  });
}

TEST_P(ProcessTransports, NoticeConnectionsThatAreShutDown) {
  expect_loss([] {
    for (int fd = 3; fd < 256; ++fd) ::shutdown(fd, SHUT_RDWR);
    ::pause();
  });
}

TEST_P(ProcessTransports, GetNoAnswerFromAStoppedRank) {
  Processes ranks(GetParam(), 3, {}, [&](Transport& transport) {
    meet(3);
    RankState mine;
    mine.waits_for = 1;
    mine.doing = "rank " + std::to_string(transport.rank());
    if (transport.rank() == 1) ::raise(SIGSTOP);
    transport.ask();
    const auto until = Clock::now() + 1s;
    while (Clock::now() < until) {
      transport.arm();
      transport.sleep(std::min(until, Clock::now() + 50ms));
      transport.disarm();
      if (const auto why = transport.check(mine)) throw std::runtime_error(why->text);
    }
    const int other = 2 - transport.rank();
    const auto answers = transport.answers();
    if (answers[1].answered || !answers[other].answered || answers[other].waits_for != 1 ||
        answers[other].doing != "rank " + std::to_string(other)) {
      throw std::runtime_error("other answers");
    }
    meet(5);
  });
  EXPECT_EQ(ranks.wait(0), 0);
  EXPECT_EQ(ranks.wait(2), 0);
  ranks.signal(1, SIGKILL);
  EXPECT_EQ(ranks.wait(1), -SIGKILL);
}

INSTANTIATE_TEST_SUITE_P(All, ProcessTransports, testing::Values("shm", "tcp"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lamina::comm
