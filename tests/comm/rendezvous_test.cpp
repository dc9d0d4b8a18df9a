// Ranks that are threads (and processes, where one is killed) meet, or hear why they cannot.
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <latch>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/rendezvous/channel.hpp"
#include "tests/support/temp_dir.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;
using test::TempDir;

/// A port that is free now, for the tests that need one by number.
int free_port() {
  const Descriptor socket = listen_on(*numeric_address("127.0.0.1", 0));
  return SocketAddress::of(socket).port();
}

struct Outcome {
  std::vector<std::string> blobs;
  std::string kind = "nothing", text;
  double seconds = 0;
};

Outcome outcome_of(const std::function<std::vector<std::string>()>& call) {
  Outcome out;
  const auto start = Time::now();
  try {
    out.blobs = call();
    out.kind = "met";
  } catch (const Timeout& e) {
    out.kind = "Timeout", out.text = e.what();
  } catch (const Mismatch& e) {
    out.kind = "Mismatch", out.text = e.what();
  } catch (const PeerLost& e) {
    out.kind = "PeerLost", out.text = e.what();
  } catch (const IoError& e) {
    out.kind = "IoError", out.text = e.what();
  } catch (const ValueError& e) {
    out.kind = "ValueError", out.text = e.what();
  }
  out.seconds = std::chrono::duration<double>(Time::now() - start).count();
  return out;
}

std::vector<Outcome> meet(const std::vector<Meeting>& meetings, std::vector<std::chrono::milliseconds> late = {}) {
  std::vector<Outcome> out(meetings.size());
  std::vector<std::thread> threads;
  late.resize(meetings.size());
  for (std::size_t i = 0; i < meetings.size(); ++i) {
    threads.emplace_back([&, i] {
      std::this_thread::sleep_for(late[i]);
      out[i] =
          outcome_of([&] { return rendezvous(meetings[i])->exchange("blob of " + std::to_string(meetings[i].rank)); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return out;
}

void expect_all(const std::vector<Outcome>& outcomes, std::string_view kind,
                std::initializer_list<std::string_view> parts, double within) {
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    EXPECT_EQ(outcomes[i].kind, kind) << i << ": " << outcomes[i].text;
    EXPECT_LT(outcomes[i].seconds, within) << i << ": " << outcomes[i].text;
    EXPECT_EQ(outcomes[i].text.find('\n'), std::string::npos);
    for (const std::string_view part : parts) {
      EXPECT_NE(outcomes[i].text.find(part), std::string::npos)
          << i << ": '" << part << "' is not in " << outcomes[i].text;
    }
  }
}

/// Both kinds of place, for what holds for both.
class Place : public testing::TestWithParam<const char*> {
 protected:
  Place()
      : place_(GetParam() == std::string("tcp") ? "tcp://127.0.0.1:" + std::to_string(free_port())
                                                : "file://" + (dir_ / "meeting").native()) {}
  bool file() const { return place_.starts_with("file"); }
  Meeting meeting(int rank, int size, std::chrono::milliseconds timeout = 20s, std::string job = "test") const {
    return {.rank = rank, .size = size, .place = place_, .job = std::move(job), .timeout = timeout};
  }
  std::vector<Meeting> world(int size, std::chrono::milliseconds timeout = 20s) const {
    std::vector<Meeting> out;
    for (int r = 0; r < size; ++r) out.push_back(meeting(r, size, timeout));
    return out;
  }
  /// Nothing is left in the directory.
  void expect_clean() const {
    std::error_code error;
    if (file()) EXPECT_TRUE(std::filesystem::is_empty(dir_ / "meeting", error)) << error.message();
  }

  TempDir dir_;
  std::string place_;
};
INSTANTIATE_TEST_SUITE_P(comm, Place, testing::Values("tcp", "file"), [](const auto& info) { return info.param; });

TEST_P(Place, WorldsOfAnySizeMeet) {
  for (const int size : {1, 2, 3, 8, 24}) {
    const auto outcomes = meet(world(size));
    for (const Outcome& outcome : outcomes) {
      ASSERT_EQ(outcome.kind, "met") << outcome.text;
      ASSERT_EQ(outcome.blobs.size(), static_cast<std::size_t>(size));
      for (int r = 0; r < size; ++r)
        EXPECT_EQ(outcome.blobs[static_cast<std::size_t>(r)], "blob of " + std::to_string(r));
    }
    if (size > 1) expect_clean();
  }
}

TEST_P(Place, SeveralExchangesAndAllKindsOfBlobs) {
  constexpr int kSize = 3;
  const auto blob = [](int rank, int round) {
    if (round == 0) return std::string();
    if (round == 1) return std::string("\0\n\xff", 3);
    if (round == 2)
      return std::string(std::size_t{3 + static_cast<std::size_t>(rank)} << 20, static_cast<char>('a' + rank));
    return fmt::format("{} in {}", rank, round);
  };
  std::vector<std::thread> threads;
  for (int r = 0; r < kSize; ++r) {
    threads.emplace_back([&, r] {
      const auto meeting_place = rendezvous(meeting(r, kSize));
      for (int round = 0; round < 12; ++round) {
        if (round == 5 + r) std::this_thread::sleep_for(30ms);
        const auto blobs = meeting_place->exchange(blob(r, round));
        ASSERT_EQ(blobs.size(), std::size_t{kSize});
        for (int from = 0; from < kSize; ++from)
          ASSERT_TRUE(blobs[static_cast<std::size_t>(from)] == blob(from, round));
      }
      EXPECT_EQ(meeting_place->address(), file() ? "" : "127.0.0.1");
      const std::string large(Rendezvous::kMaxBlob + 1, 'x');
      LAMINA_EXPECT_ERROR(meeting_place->exchange(large), ValueError, "at most");
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_clean();
}

TEST_P(Place, LateRanksAreWaitedFor) {
  for (const auto& outcome : meet(world(4), {0ms, 700ms, 300ms, 0ms})) EXPECT_EQ(outcome.kind, "met") << outcome.text;
  for (const auto& outcome : meet(world(3), {600ms, 0ms, 100ms})) EXPECT_EQ(outcome.kind, "met") << outcome.text;
  expect_clean();
}

TEST_P(Place, TimeoutNamesWhoIsMissing) {
  auto meetings = world(5, 1s);
  meetings.erase(meetings.begin() + 3);
  meetings.erase(meetings.begin() + 1);
  const auto outcomes = meet(meetings);
  expect_all(outcomes, "Timeout", {"ranks 1 and 3 of 5", place_}, 2.5);
  for (const Outcome& outcome : outcomes) EXPECT_GT(outcome.seconds, 0.5);
  expect_clean();
}

TEST_P(Place, TheEarliestDeadlineIsEverybodys) {
  expect_all(meet({meeting(0, 3, 60s), meeting(2, 3, 1s)}), "Timeout", {"rank 1 of 3", "deadline of rank 2"}, 2.5);
}

TEST_P(Place, RankZeroMissing) {
  expect_all(meet({meeting(1, 3, 700ms), meeting(2, 3, 700ms)}), "Timeout", {"rank 0 has not come", place_}, 2);
  expect_clean();
}

TEST_P(Place, LateForTheSecondExchange) {
  std::vector<Outcome> outcomes(3);
  std::vector<std::thread> threads;
  std::latch done(2);
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      const auto here = rendezvous(meeting(r, 3, 1s));
      here->exchange("");
      if (r == 2) return done.wait();
      outcomes[static_cast<std::size_t>(r)] = outcome_of([&] { return here->exchange(""); });
      // Once failed, always failed.
      EXPECT_EQ(outcome_of([&] { return here->exchange(""); }).text, outcomes[static_cast<std::size_t>(r)].text);
      done.count_down();
    });
  }
  for (std::thread& thread : threads) thread.join();
  outcomes.pop_back();
  expect_all(outcomes, "Timeout", {"rank 2 of 3", "exchange 2"}, 3);
}

TEST_P(Place, OneRankTwice) {
  expect_all(meet({meeting(0, 4), meeting(1, 4), meeting(2, 4), meeting(2, 4)}), "Mismatch",
             {"two processes are rank 2", "pid"}, 5);
  expect_all(meet({meeting(0, 3), meeting(0, 3), meeting(1, 3)}), "Mismatch", {"two processes are rank 0"}, 5);
  expect_clean();
}

TEST_P(Place, OtherWorldSize) {
  expect_all(meet({meeting(0, 4), meeting(1, 4), meeting(2, 5)}, {0ms, 100ms, 0ms}), "Mismatch",
             {"rank 0", "world of 4", "rank 2", "one of 5"}, 5);
  expect_clean();
}

TEST_P(Place, OtherJob) {
  // Refused alone; who waits for its place hears of it at the deadline.
  const auto outcomes = meet({meeting(0, 3, 1500ms, "a"), meeting(1, 3, 1500ms, "a"), meeting(2, 3, 1500ms, "b")});
  expect_all(outcomes, "Mismatch", {"rank 0", "job 'a'", "rank 2", "job 'b'"}, 4);
  // And does not disturb a job that is complete without it.
  auto meetings = world(3, 3s);
  meetings.push_back(meeting(1, 3, 500ms, "b"));
  const auto more = meet(meetings, {0ms, 200ms, 1s, 0ms});
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(more[static_cast<std::size_t>(r)].kind, "met") << more[static_cast<std::size_t>(r)].text;
  EXPECT_EQ(more[3].kind, "Mismatch") << more[3].text;
  expect_clean();
}

/// Forks; the child runs `body` and ends. Only from tests whose process has no threads then.
pid_t forked(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    body();
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}
int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

TEST_P(Place, RelaunchedAtOnceAfterAKill) {
  for (int run = 0; run < 20; ++run) {
    // Three of four, so that they wait; killed at different moments.
    std::vector<pid_t> old;
    for (int r = 0; r < 3; ++r) old.push_back(forked([&] { rendezvous(meeting(r, 4))->exchange("old"); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(3 * run));
    for (const pid_t child : old) ::kill(child, SIGKILL);
    std::vector<pid_t> ranks;
    for (int r = 4; r-- > 0;) {
      ranks.push_back(forked([&] {
        const auto here = rendezvous(meeting(r, 4));
        for (const std::string& blob : here->exchange("new")) {
          if (blob != "new") ::_exit(3);
        }
        here->exchange("");
      }));
    }
    for (const pid_t child : ranks) ASSERT_EQ(status_of(child), 0) << "run " << run;
    for (const pid_t child : old) status_of(child);
  }
  expect_clean();
}

TEST_P(Place, WhatACompleteRunLeftBehind) {
  // Killed after they met: the files of a whole exchange are there, and nobody may take them for his.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  std::vector<pid_t> old;
  for (int r = 0; r < 3; ++r) {
    old.push_back(forked([&] {
      const auto here = rendezvous(meeting(r, 3));
      here->exchange("old");
      (void)!::write(pipe[1], "x", 1);
      ::pause();
    }));
  }
  char byte;
  for (int r = 0; r < 3; ++r) ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  for (const pid_t child : old) ::kill(child, SIGKILL), status_of(child);
  ::close(pipe[0]), ::close(pipe[1]);
  const auto outcomes = meet(world(3), {400ms, 0ms, 0ms});
  for (const Outcome& outcome : outcomes) {
    ASSERT_EQ(outcome.kind, "met") << outcome.text;
    EXPECT_EQ(outcome.blobs[1], "blob of 1");
  }
  expect_clean();
}

// ---- TCP alone ----

class Tcp : public testing::Test {
 protected:
  Meeting meeting(int rank, int size, std::chrono::milliseconds timeout = 20s) const {
    return {.rank = rank,
            .size = size,
            .place = "tcp://127.0.0.1:" + std::to_string(port_),
            .job = "test",
            .timeout = timeout};
  }
  SocketAddress address() const { return *numeric_address("127.0.0.1", port_); }
  /// Connects as soon as rank 0 listens.
  Descriptor connected() const {
    for (;;) {
      std::error_code error;
      Descriptor socket = connect_to(address(), Time::now() + 10s, error);
      if (!error) return socket;
      std::this_thread::sleep_for(2ms);
    }
  }
  static void say(const Descriptor& socket, std::string_view text) {
    send_all(socket, std::as_bytes(std::span(text.data(), text.size())), Time::now() + 5s, "rank 0");
  }

  int port_ = free_port();
};

TEST_F(Tcp, StraysDisturbNobody) {
  Frame huge{.kind = Frame::Kind::hello, .version = kProtocolVersion, .payload = {}};
  std::string huge_head = *encode(huge);
  for (std::size_t i = 12; i < 20; ++i) huge_head[i] = '\x7f';
  Hello odd;
  odd.rank = 1, odd.size = 3, odd.job = "test";
  std::string lying = encode(odd);
  lying[24 + 3] = '\x7f';  // the length of the job's name
  const std::string lying_hello =
      *encode(Frame{.kind = Frame::Kind::hello, .version = kProtocolVersion, .payload = lying});
  std::atomic<bool> over = false;
  std::thread strays([&] {
    std::vector<Descriptor> silent;
    for (int i = 0; !over && i < 600; ++i) {
      std::error_code error;
      Descriptor socket = connect_to(address(), Time::now() + 1s, error);
      if (error) {
        std::this_thread::sleep_for(1ms);
        continue;
      }
      const std::string garbage[] = {
          "GET / HTTP/1.1\r\n\r\n", std::string(70000, '\0'), huge_head, lying_hello, "LMR", ""};
      const std::string& text = garbage[i % 6];
      (void)send_some(socket, std::as_bytes(std::span(text.data(), text.size())));
      if (i % 6 >= 4) silent.push_back(std::move(socket));  // a scanner that stays
      if (i % 7 == 0) {
        const linger reset = {1, 0};
        (void)::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      }
    }
    while (!over) {  // a byte now and then
      for (const Descriptor& socket : silent) {
        if (!over) (void)send_some(socket, std::as_bytes(std::span("L", 1)));
      }
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto outcomes = meet({meeting(0, 3), meeting(1, 3), meeting(2, 3)}, {0ms, 300ms, 1s});
  over = true;
  strays.join();
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.kind, "met") << outcome.text;
}

TEST_F(Tcp, AnotherVersion) {
  std::thread other([&] {
    const Descriptor socket = connected();
    Hello hello = hello_of(meeting(2, 3), Time::now() + 20s);
    say(socket,
        *encode(Frame{.kind = Frame::Kind::hello, .version = kProtocolVersion + 1, .payload = encode(hello) + "new"}));
    Channel channel(Descriptor(::dup(socket.get())));
    Channel::Read read;
    while ((read = channel.read(4096)) == Channel::Read::nothing) wait_until(socket, 1 /* POLLIN */, Time::now() + 1s);
    ASSERT_EQ(read, Channel::Read::frame);
    const auto verdict = decode_verdict(channel.frame().payload);
    ASSERT_TRUE(verdict.has_value());
    EXPECT_NE(verdict->text.find("version 2"), std::string::npos) << verdict->text;
  });
  const auto outcomes = meet({meeting(0, 3), meeting(1, 3)});
  other.join();
  expect_all(outcomes, "Mismatch", {"version 1", "rank 2", "version 2"}, 5);
}

TEST_F(Tcp, ADeathIsHeardOfAtOnce) {
  for (const int victim : {0, 2}) {
    for (const bool in_second : {false, true}) {
      // Processes, as threads do not die alone. The victim dies once all (but rank 3, or in the second exchange) wait.
      std::vector<pid_t> ranks;
      for (int r = 0; r < (in_second ? 4 : 3); ++r) {
        ranks.push_back(forked([&] {
          const auto here = rendezvous(meeting(r, 4));
          if (in_second) here->exchange("");
          if (in_second && r == 3) ::pause();
          try {
            here->exchange("");
          } catch (const PeerLost& e) {
            const std::string name = "rank " + std::to_string(victim);
            ::_exit(std::string(e.what()).find(name) != std::string::npos ? 7 : 8);
          }
        }));
      }
      std::this_thread::sleep_for(400ms);
      ::kill(ranks[static_cast<std::size_t>(victim)], SIGKILL);
      const auto start = Time::now();
      for (int r = 0; r < 3; ++r) {
        const int status = status_of(ranks[static_cast<std::size_t>(r)]);
        if (r != victim) EXPECT_EQ(WEXITSTATUS(status), 7) << "rank " << r << ", victim " << victim << in_second;
      }
      EXPECT_LT(Time::now() - start, 4s);
      if (in_second) ::kill(ranks[3], SIGKILL), status_of(ranks[3]);
      port_ = free_port();
    }
  }
}

TEST_F(Tcp, AnInheritedSocket) {
  Descriptor listener = listen_on(address());
  const int fd = ::dup(listener.get());
  listener.close();
  Meeting host = meeting(0, 2);
  host.place = "fd://" + std::to_string(fd);
  for (const Outcome& outcome : meet({host, meeting(1, 2)})) EXPECT_EQ(outcome.kind, "met") << outcome.text;
  LAMINA_EXPECT_ERROR(rendezvous(host), IoError, "descriptor");  // used up
}

TEST_F(Tcp, NamesAndIpv6) {
  std::vector<std::string> places = {"localhost", "127.0.0.1", "0.0.0.0"};
  std::error_code error;
  if (listen_on(*numeric_address("::1", 0), error)) places.insert(places.end(), {"[::1]", "[::]"});
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  try {
    if (!resolve(name, 0).empty()) places.push_back(name);
  } catch (const IoError&) {  // a host that does not know its own name
  }
  for (const std::string& host : places) {
    Meeting a = meeting(0, 2), b = meeting(1, 2);
    a.place = b.place = "tcp://" + host + ":" + std::to_string(free_port());
    for (const Outcome& outcome : meet({a, b})) EXPECT_EQ(outcome.kind, "met") << host << ": " << outcome.text;
  }
}

TEST_F(Tcp, ThePlaceIsTaken) {
  // By something that speaks another protocol: said by rank 0, that cannot listen, and by the others, that see what it
  // is.
  const Descriptor other = listen_on(address());
  std::atomic<bool> over = false;
  std::thread server([&] {
    std::vector<Descriptor> open;
    while (!over) {
      std::error_code error;
      Descriptor socket = accept_from(other, error);
      if (socket) (void)send_some(socket, std::as_bytes(std::span("SSH-2.0-x\r\n", 11)));
      if (socket) open.push_back(std::move(socket));
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto outcomes = meet({meeting(0, 2, 2s), meeting(1, 2, 2s)});
  over = true;
  server.join();
  EXPECT_EQ(outcomes[0].kind, "IoError") << outcomes[0].text;
  EXPECT_NE(outcomes[0].text.find("in use"), std::string::npos) << outcomes[0].text;
  EXPECT_EQ(outcomes[1].kind, "IoError") << outcomes[1].text;
  EXPECT_NE(outcomes[1].text.find("SSH-2.0"), std::string::npos) << outcomes[1].text;
}

TEST_F(Tcp, WhoTakesTheConnectionAndSaysNothing) {
  const Descriptor silent = listen_on(address());
  const Outcome outcome = outcome_of([&] { return rendezvous(meeting(1, 2, 500ms))->exchange(""); });
  EXPECT_EQ(outcome.kind, "Timeout") << outcome.text;
  EXPECT_NE(outcome.text.find("says nothing"), std::string::npos) << outcome.text;
  EXPECT_LT(outcome.seconds, 2);
}

TEST(Rendezvous, MalformedMeetings) {
  const auto expect = [](Meeting meeting, std::string_view part) {
    LAMINA_EXPECT_ERROR(rendezvous(meeting), ValueError, part);
  };
  expect({.rank = 2, .size = 2, .place = "tcp://a:1"}, "no rank 2 in a world of 2");
  expect({.rank = -1, .size = 2, .place = "tcp://a:1"}, "no rank -1");
  expect({.rank = 0, .size = 0, .place = "tcp://a:1"}, "world of 0");
  expect({.rank = 0, .size = 2, .place = ""}, "place");
  expect({.rank = 0, .size = 2, .place = "tcp://a:1", .timeout = 0ms}, "positive");
  expect({.rank = 0, .size = 2, .place = "tcp://a:1", .job = std::string(256, 'x')}, "256 bytes");
  expect({.rank = 1, .size = 2, .place = "fd://3"}, "only rank 0");
  for (const char* place :
       {"fd://x",     "fd://",       "fd://-1",     "fd://3x",      "file://x",      "file:",      "udp://a:1",
        "tcp://",     "tcp://a",     "tcp://a:",    "tcp://:1",     "tcp://a:65536", "tcp://a:-1", "tcp://a:+1",
        "tcp://a:1x", "tcp://::1:5", "tcp://[::1]", "tcp://[::1:5", "tcp://a:0",     "tcp://[]:1"}) {
    const std::string_view text = place;
    expect({.rank = 0, .size = 2, .place = place}, text.substr(text.starts_with("tcp") ? 6 : 0));
  }
}

TEST(Rendezvous, ADirectoryThatCannotBeMade) {
  const TempDir dir;
  test::put(dir / "file", "");
  const Meeting meeting{.rank = 0, .size = 2, .place = "file://" + (dir / "file").native()};
  LAMINA_EXPECT_ERROR(rendezvous(meeting)->exchange(""), IoError, "file");
}

TEST(Socket, NeverItself) {
  // A connection to one's own ephemeral port can be to oneself.
  for (int i = 0; i < 3; ++i) {
    std::error_code error;
    EXPECT_FALSE(connect_to(*numeric_address("127.0.0.1", free_port()), Time::now() + 1s, error));
    EXPECT_EQ(error, std::errc::connection_refused);
  }
}

TEST(Socket, Addresses) {
  EXPECT_EQ(to_string(*numeric_address("10.0.0.1", 29500)), "10.0.0.1:29500");
  EXPECT_EQ(to_string(*numeric_address("::1", 29500)), "[::1]:29500");
  EXPECT_EQ(to_string(*numeric_address("::ffff:10.0.0.1", 7)), "10.0.0.1:7");
  EXPECT_FALSE(numeric_address("localhost", 1).has_value());
  EXPECT_TRUE(numeric_address("127.0.1.1", 1)->is_loopback() && numeric_address("::1", 1)->is_loopback());
  EXPECT_FALSE(numeric_address("10.0.0.1", 1)->is_loopback() || numeric_address("fe80::1", 1)->is_loopback());
  EXPECT_TRUE(numeric_address("::", 1)->is_any() && numeric_address("0.0.0.0", 1)->is_any());
  EXPECT_EQ(numeric_address("10.0.0.1", 1)->with_port(2).port(), 2);
  LAMINA_EXPECT_ERROR(resolve("no.such.host.invalid", 1), IoError, "no.such.host.invalid");
}

}  // namespace
}  // namespace lamina::comm
