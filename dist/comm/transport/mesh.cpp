#include "lamina/dist/comm/transport/mesh.hpp"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

using Flow = Transfer::Flow;

// Says who connects to whom; sent back as the welcome.
struct Hello {
  char magic[8] = {'l', 'a', 'm', 'i', 'n', 'a', '\0', '\1'};
  std::uint32_t version = kProtocolVersion;
  std::uint32_t header_bytes = sizeof(MessageHeader);
  RandomId world{};
  std::int32_t size = 0, from = 0, to = 0, channel = 0;
};
static_assert(sizeof(Hello) == 48);

// A connection on its way: one that this rank makes, or one that came to its listener.
struct Attempt {
  Descriptor socket;
  int peer = -1, channel = -1;  // of one that came: unknown until it says
  enum class Stage : std::uint8_t { connecting, sending, receiving, done } stage = Stage::connecting;
  std::size_t at = 0;                                 // bytes of the hello moved
  Hello hello;                                        // what is sent, or what has come
  std::size_t address = 0;                            // which of the peer's is being tried
  Clock::time_point next = Clock::time_point::max();  // when to try the next
  std::string tried;
};

class MeshMaker {
 public:
  MeshMaker(const Descriptor& listener, const MeshPlan& plan) : listener_(listener), plan_(plan) {
    mesh_.resize(plan.size);
    for (auto& peer : mesh_) peer.resize(plan.channels);
    mesh_[plan.rank].clear();
    missing_ = (plan.size - 1) * plan.channels;
  }

  std::vector<std::vector<Descriptor>> run() {
    for (int peer = 0; peer < plan_.rank; ++peer) {
      for (int channel = 0; channel < plan_.channels; ++channel) {
        Attempt& attempt = ours_.emplace_back();
        attempt.peer = peer;
        attempt.channel = channel;
        begin(attempt);
      }
    }
    while (missing_ > 0) turn();
    return std::move(mesh_);
  }

 private:
  static constexpr auto kPatience = std::chrono::seconds(3);  // with one address while there are others

  bool accepts(const Hello& hello) const noexcept {
    const Hello mine;
    return std::memcmp(hello.magic, mine.magic, sizeof mine.magic) == 0 && hello.version == mine.version &&
           hello.header_bytes == mine.header_bytes && hello.world == plan_.world && hello.size == plan_.size &&
           hello.to == plan_.rank && hello.from > plan_.rank && hello.from < plan_.size && hello.channel >= 0 &&
           hello.channel < plan_.channels && !mesh_[hello.from][hello.channel];
  }

  // Tries the addresses from `attempt.address` on, until one is on its way.
  void begin(Attempt& attempt) {
    const auto& addresses = plan_.reached[attempt.peer];
    for (; attempt.address < addresses.size(); ++attempt.address) {
      const SocketAddress& address = addresses[attempt.address];
      attempt.socket = stream_socket(address.family());
      attempt.at = 0;
      attempt.stage = Attempt::Stage::connecting;
      attempt.next = Clock::now() + kPatience;
      if (::connect(attempt.socket.get(), address.get(), address.length()) == 0) {
        attempt.stage = Attempt::Stage::sending;
        return;
      }
      if (errno == EINPROGRESS || errno == EINTR) return;
      if (errno == EAGAIN) {  // AF_UNIX: the other side's queue is full just now
        attempt.next = Clock::now() + std::chrono::milliseconds(1);
        return;
      }
      note(attempt, text_of_errno(errno));
    }
    fail<IoError>(plan_.where, "rank {} cannot reach rank {}: tried {}", plan_.rank, attempt.peer, attempt.tried);
  }

  // Only an AF_UNIX socket can be neither connected nor refused nor on its way.
  bool queued(const Attempt& attempt) const noexcept {
    return attempt.stage == Attempt::Stage::connecting &&
           plan_.reached[attempt.peer][attempt.address].family() == AF_UNIX;
  }
  void note(Attempt& attempt, const std::string& outcome) const {
    attempt.tried += fmt::format("{}{}: {}", attempt.tried.empty() ? "" : "; ",
                                 to_string(plan_.reached[attempt.peer][attempt.address]), outcome);
  }
  void try_next(Attempt& attempt, const std::string& outcome) {
    note(attempt, outcome);
    ++attempt.address;
    begin(attempt);
  }

  // Moves the rest of the hello. True when it is through.
  static bool move_hello(Attempt& attempt, bool out, Transfer& last) {
    std::byte* bytes = reinterpret_cast<std::byte*>(&attempt.hello);
    while (attempt.at < sizeof(Hello)) {
      const iovec piece = {bytes + attempt.at, sizeof(Hello) - attempt.at};
      last = out ? send_some(attempt.socket, {&piece, 1}) : receive_some(attempt.socket, {&piece, 1});
      if (last.flow != Flow::moved) return false;
      attempt.at += last.bytes;
    }
    attempt.at = 0;
    return true;
  }

  void finish(Attempt& attempt) {
    set_no_delay(attempt.socket);
    mesh_[attempt.peer][attempt.channel] = std::move(attempt.socket);
    attempt.stage = Attempt::Stage::done;
    --missing_;
  }

  void advance_ours(Attempt& attempt) {
    Transfer last;
    if (attempt.stage == Attempt::Stage::connecting) {
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return try_next(attempt, text_of_errno(error));
      attempt.stage = Attempt::Stage::sending;
    }
    if (attempt.stage == Attempt::Stage::sending) {
      if (attempt.at == 0) {
        attempt.hello = Hello{};
        attempt.hello.world = plan_.world;
        attempt.hello.size = plan_.size;
        attempt.hello.from = plan_.rank;
        attempt.hello.to = attempt.peer;
        attempt.hello.channel = attempt.channel;
      }
      if (!move_hello(attempt, true, last)) {
        if (last.flow == Flow::broken) try_next(attempt, reason_of(last));
        return;
      }
      attempt.stage = Attempt::Stage::receiving;
    }
    const Hello mine = attempt.hello;
    if (!move_hello(attempt, false, last)) {
      if (last.flow == Flow::broken) try_next(attempt, reason_of(last));
      return;
    }
    if (std::memcmp(&attempt.hello, &mine, sizeof mine) != 0) {
      return try_next(attempt, "what listens there is not the rank");
    }
    finish(attempt);
  }

  // False: it is none of ours, and is dropped.
  bool advance_theirs(Attempt& attempt) {
    Transfer last;
    if (attempt.stage == Attempt::Stage::receiving) {
      if (!move_hello(attempt, false, last)) return last.flow != Flow::broken;
      if (!accepts(attempt.hello)) return false;
      attempt.peer = attempt.hello.from;
      attempt.channel = attempt.hello.channel;
      attempt.stage = Attempt::Stage::sending;
    }
    if (!move_hello(attempt, true, last)) return last.flow != Flow::broken;
    finish(attempt);
    return true;
  }

  void accept_all() {
    for (std::error_code error;;) {
      Descriptor socket = accept_from(listener_, error);
      if (!socket) return;
      Attempt& attempt = theirs_.emplace_back();
      attempt.socket = std::move(socket);
      attempt.stage = Attempt::Stage::receiving;
    }
  }

  void turn() {
    const auto now = Clock::now();
    if (now >= plan_.deadline) fail_late();
    auto next = plan_.deadline;
    std::vector<pollfd> polls = {{listener_.get(), POLLIN, 0}};
    const auto watch = [&](const Attempt& attempt) {
      polls.push_back(
          {attempt.socket.get(), static_cast<short>(attempt.stage == Attempt::Stage::receiving ? POLLIN : POLLOUT), 0});
    };
    for (Attempt& attempt : ours_) {
      const bool others = attempt.address + 1 < plan_.reached[attempt.peer].size();
      if (attempt.stage == Attempt::Stage::done) continue;
      if (attempt.stage == Attempt::Stage::connecting) {
        if (now >= attempt.next) {
          if (queued(attempt)) {
            begin(attempt);
          } else if (others) {
            try_next(attempt, "no answer");
          }
        }
        if (attempt.next > now) next = std::min(next, attempt.next);
      }
      watch(attempt);
      if (queued(attempt)) polls.back().fd = -1;
    }
    for (const Attempt& attempt : theirs_) watch(attempt);
    const std::size_t theirs = polls.size() - theirs_.size();
    // One that is connected and ends now will not take part any more.
    const std::size_t connected = polls.size();
    std::vector<int> peers;
    for (int peer = 0; peer < plan_.size; ++peer) {
      if (peer == plan_.rank || !mesh_[peer][0] || spoke(peer)) continue;
      polls.push_back({mesh_[peer][0].get(), POLLIN, 0});
      peers.push_back(peer);
    }

    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - now).count();
    ::poll(polls.data(), polls.size(), static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000)));

    for (std::size_t i = 0; i < peers.size(); ++i) {
      if (polls[connected + i].revents != 0) look_at(peers[i]);
    }
    std::size_t at = 1;
    for (Attempt& attempt : ours_) {
      if (attempt.stage != Attempt::Stage::done && polls[at++].revents != 0) advance_ours(attempt);
    }
    at = theirs;
    std::erase_if(theirs_, [&](Attempt& attempt) {
      return polls[at++].revents != 0 && (!advance_theirs(attempt) || attempt.stage == Attempt::Stage::done);
    });
    if (polls[0].revents != 0) accept_all();
  }

  bool spoke(int peer) const { return std::find(spoke_.begin(), spoke_.end(), peer) != spoke_.end(); }
  void look_at(int peer) {
    char byte;
    const ssize_t n = ::recv(mesh_[peer][0].get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0) {
      spoke_.push_back(peer);  // it is through, and already at work
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
      fail<PeerLost>(plan_.where, "rank {} went away while the ranks were being connected", peer);
    }
  }

  [[noreturn]] void fail_late() const {
    std::string who;
    for (int peer = 0; peer < plan_.size; ++peer) {
      const auto& sockets = mesh_[peer];
      if (std::all_of(sockets.begin(), sockets.end(), [](const Descriptor& socket) { return bool(socket); })) continue;
      if (!who.empty()) who += ", ";
      who += std::to_string(peer);
      if (peer > plan_.rank) {
        who += " (did not connect)";
      } else {
        std::string addresses;
        for (const SocketAddress& address : plan_.reached[peer]) {
          addresses += (addresses.empty() ? "" : ", ") + to_string(address);
        }
        who += fmt::format(" (no answer from {})", addresses);
      }
    }
    fail<IoError>(plan_.where, "rank {} is not connected to rank {}", plan_.rank, who);
  }

  const Descriptor& listener_;
  const MeshPlan& plan_;
  std::vector<std::vector<Descriptor>> mesh_;
  std::vector<Attempt> ours_, theirs_;
  std::vector<int> spoke_;
  int missing_ = 0;
};

}  // namespace

std::vector<std::vector<Descriptor>> connect_mesh(const Descriptor& listener, const MeshPlan& plan) {
  return MeshMaker(listener, plan).run();
}

}  // namespace lamina::comm
