// How ranks connect, and who is turned away.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/mesh.hpp"
#include "tests/comm/traffic.hpp"
#include "tests/comm/transport_worlds.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;

// Everything but one rank's blob as it was.
class Forged final : public Rendezvous {
 public:
  using Change = std::function<void(std::string&)>;
  Forged(Rendezvous& inner, Change change) : inner_(inner), change_(std::move(change)) {}
  std::vector<std::string> exchange(const std::string& blob) override {
    std::string changed = blob;
    change_(changed);
    return inner_.exchange(changed);
  }
  std::string address() const override { return inner_.address(); }

 private:
  Rendezvous& inner_;
  Change change_;
};

void replace_line(std::string& text, int line, const std::string& by) {
  std::size_t begin = 0;
  for (; line > 0; --line) begin = text.find('\n', begin) + 1;
  text.replace(begin, std::min(text.find('\n', begin), text.size()) - begin, by);
}

// What each of two ranks throws, rank 1 with its own options and a changed blob.
std::vector<std::string> failures(const std::function<void(Rendezvous&, int)>& connect, const Forged::Change& change) {
  auto meeting = LocalRendezvous::of(2);
  std::vector<std::string> texts(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      Forged forged(
          *meeting[rank], rank == 1 ? change : [](std::string&) {});
      try {
        connect(forged, rank);
      } catch (const Mismatch& e) {
        texts[rank] = std::string("Mismatch: ") + e.what();
      } catch (const ValueError& e) {
        texts[rank] = std::string("ValueError: ") + e.what();
      } catch (const IoError& e) {
        texts[rank] = std::string("IoError: ") + e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return texts;
}
void unchanged(std::string&) {}

void connect_shm(Rendezvous& meeting, int rank) { shared_memory_transport(meeting, rank, 2); }
void connect_tcp(Rendezvous& meeting, int rank) { tcp_transport(meeting, rank, 2); }

TEST(Connecting, NamesWhatDoesNotFitOnBothSides) {
  const auto expect = [](const std::vector<std::string>& texts, const std::string& part) {
    for (const std::string& text : texts) EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(failures(connect_shm, [](std::string& blob) { replace_line(blob, 2, "other-boot/1"); }),
         "(other-boot/1), rank 0 on");
  expect(failures([](Rendezvous& m, int rank) { rank == 0 ? connect_shm(m, 0) : connect_tcp(m, 1); }, unchanged),
         "Mismatch: transport: rank");
  expect(failures(
             [](Rendezvous& m, int rank) {
               SharedMemoryOptions options;
               options.ring_bytes = rank == 0 ? 1024 : 2048;
               shared_memory_transport(m, rank, 2, options);
             },
             unchanged),
         "Mismatch: shm: rank 1 wants rings of 2048 bytes, rank 0 of 1024");
  expect(failures(
             [](Rendezvous& m, int rank) {
               TcpOptions options;
               options.connections = 1 + rank;
               tcp_transport(m, rank, 2, options);
             },
             unchanged),
         "Mismatch: tcp: rank 1 wants 2 connections a pair, rank 0 1");
  expect(failures(connect_tcp, [](std::string& blob) { replace_line(blob, 2, "other-boot/1"); }),
         "listens on 127.0.0.1 only, where rank");
}

TEST(Connecting, RefusesOptionsThatCannotBe) {
  auto meeting = LocalRendezvous::of(1);
  SharedMemoryOptions shm;
  for (const std::size_t bytes : {0, 512, 1000, 3000}) {
    shm.ring_bytes = bytes;
    EXPECT_THROW(shared_memory_transport(*meeting[0], 0, 1, shm), ValueError);
    EXPECT_THROW(shared_memory_transports(2, shm), ValueError);
  }
  for (const TcpOptions& tcp : {TcpOptions{.bind = "", .port = -1}, TcpOptions{.bind = "", .port = 65536},
                                TcpOptions{.bind = "", .port = 0, .connections = 0}, TcpOptions{.bind = "no_such0"}}) {
    EXPECT_THROW(tcp_transport(*meeting[0], 0, 1, tcp), ValueError);
  }
  try {
    tcp_transport(*meeting[0], 0, 1, {.bind = "no_such0"});
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("'no_such0'"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("lo"), std::string::npos) << e.what();
  }
  EXPECT_THROW(tcp_transport(*meeting[0], 0, 1, {.bind = "192.0.2.1"}), IoError);
}

TEST(Connecting, WorksOverEveryKindOfAddress) {
  for (const char* bind : {"", "lo", "127.0.0.1", "::1", "0.0.0.0", "::"}) {
    auto meeting = LocalRendezvous::of(3, "");
    try {
      listen_on(SocketAddress(*bind == '\0' || std::string(bind) == "lo" ? "127.0.0.1" : bind, 0));
    } catch (const IoError&) {
      continue;  // a host without IPv6
    }
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        TcpOptions options;
        options.bind = bind;
        const auto transport = tcp_transport(*meeting[rank], rank, 3, options);
        Traffic(*transport, 1, 5, 10'000).run(10);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(Connecting, NamesTheAddressesThatDoNotAnswer) {
  const auto texts = failures(
      [](Rendezvous& m, int rank) {
        TcpOptions options;
        options.timeout = 300ms;
        tcp_transport(m, rank, 2, options);
      },
      [](std::string&) {});
  EXPECT_EQ(texts[0] + texts[1], "");
  // Rank 0 says it listens on a port where nobody is.
  auto meeting = LocalRendezvous::of(2);
  std::string of_rank0, of_rank1;
  std::thread rank0([&] {
    Forged forged(*meeting[0], [](std::string& blob) { replace_line(blob, 5, "1"); });
    TcpOptions options;
    options.timeout = 300ms;
    try {
      tcp_transport(forged, 0, 2, options);
    } catch (const IoError& e) {
      of_rank0 = e.what();
    }
  });
  try {
    tcp_transport(*meeting[1], 1, 2);
  } catch (const IoError& e) {
    of_rank1 = e.what();
  }
  rank0.join();
  EXPECT_EQ(of_rank1, "tcp: rank 1 cannot reach rank 0: tried 127.0.0.1:1: Connection refused");
  EXPECT_EQ(of_rank0, "tcp: rank 0 is not connected to rank 1 (did not connect)");
}

// Port scanners, other worlds, ranks that are there already, and connections that say nothing.
TEST(Connecting, IsNotDisturbedByStrays) {
  std::vector<Descriptor> listeners;
  MeshPlan plan;
  plan.where = "tcp";
  plan.size = 3;
  plan.channels = 2;
  plan.world = random_id();
  plan.deadline = Clock::now() + 10s;
  for (int rank = 0; rank < 3; ++rank) {
    listeners.push_back(listen_on(SocketAddress("127.0.0.1", 0)));
    plan.reached.push_back({SocketAddress::of(listeners[rank])});
  }
  const auto dial = [&](int rank) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const SocketAddress& to = plan.reached[rank][0];
    EXPECT_EQ(::connect(socket.get(), to.get(), to.length()), 0);
    return socket;
  };
  std::vector<Descriptor> strays;
  for (int i = 0; i < 100; ++i) {
    strays.push_back(dial(i % 3));
    const std::string words[] = {"", "GET / HTTP/1.1\r\n\r\n", std::string("lamina\0\1", 8), std::string(5000, '\xff'),
                                 std::string("lamina\0\1\1\0\0\0", 12) + std::string(36, '\0')};
    const std::string& text = words[i % 5];
    ::send(strays.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (i % 4 == 0) strays.pop_back();
  }
  std::atomic<bool> stop{false};
  std::thread noise([&] {
    Dice dice(1);
    while (!stop) {
      const Descriptor socket = dial(1);
      const auto number = static_cast<std::int64_t>(dice.next());
      ::send(socket.get(), &number, sizeof number, MSG_NOSIGNAL);
    }
  });
  // A rank of another world that tries to be rank 2.
  std::thread other([&] {
    MeshPlan stranger = plan;
    stranger.rank = 2;
    stranger.world = random_id();
    EXPECT_THROW(connect_mesh(listen_on(SocketAddress("127.0.0.1", 0)), stranger), IoError);
  });
  std::vector<std::vector<std::vector<Descriptor>>> meshes(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      MeshPlan mine = plan;
      mine.rank = rank;
      if (rank == 2) std::this_thread::sleep_for(100ms);
      meshes[rank] = connect_mesh(listeners[rank], mine);
    });
  }
  for (std::thread& rank : ranks) rank.join();
  other.join();
  stop = true;
  noise.join();
  // The sockets are those of the ranks and channels they are said to be.
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      for (int c = 0; a != b && c < 2; ++c) {
        EXPECT_EQ(SocketAddress::of(meshes[a][b][c]).port(), SocketAddress::of_peer(meshes[b][a][c]).port());
      }
    }
  }
}

TEST(Connecting, WorksWhenEveryTransferIsCutShort) {
  cut_transfers(true);
  for (const char* kind : {"shm", "tcp"}) {
    WorldOptions options;
    options.connections = 2;
    auto meeting = LocalRendezvous::of(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const auto transport = make_transport(kind, *meeting[rank], rank, 2, options);
        Traffic(*transport, 1, 4, 1'000'000).run(100);
        // Questions and answers too.
        const RankState mine{true, 1 - rank, std::string(3000, 'x')};
        transport->ask();
        const auto until = Clock::now() + 10s;
        while (!transport->answers()[1 - rank].answered && Clock::now() < until) transport->check(mine);
        EXPECT_EQ(transport->answers()[1 - rank].doing, mine.doing);
        for (const auto end = Clock::now() + 100ms; Clock::now() < end;) transport->check(mine);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  cut_transfers(false);
}

}  // namespace
}  // namespace lamina::comm
