#include "lamina/dist/comm/transport/control.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

// A frame is its kind, and for all but the first a 32-bit length and a body.
enum Kind : std::uint8_t { kDoorbell = 'D', kGoodbye = 'G', kAbort = 'X', kAsk = '?', kAnswer = '!' };
constexpr std::size_t kFrameHead = 1 + sizeof(std::uint32_t);
constexpr std::size_t kMaxText = 4096;           // of an abort or answer
constexpr std::size_t kMaxBody = kMaxText + 64;  // longer ones are not ours
constexpr std::size_t kMaxOutbox = 1 << 16;
// A data connection may be seen to end before the goodbye that was sent on the control connection.
constexpr auto kGrace = std::chrono::milliseconds(500);

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
bool get(std::string_view& from, T& value) {
  if (from.size() < sizeof value) return false;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return true;
}

}  // namespace

Control::Control(std::string where, int rank, std::vector<Descriptor> sockets, std::vector<std::string> names)
    : where_(std::move(where)),
      rank_(rank),
      peers_(sockets.size()),
      answers_(sockets.size()),
      ready_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!ready_ || !wake_) fail<IoError>(where_, "cannot make an epoll and an eventfd: {}", text_of_errno(errno));
  const auto watch = [&](int fd, std::uint32_t id) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = id;
    if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      fail<IoError>(where_, "cannot watch a socket: {}", text_of_errno(errno));
    }
  };
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    peers_[peer].name = std::move(names[peer]);
    if (static_cast<int>(peer) == rank_) continue;
    peers_[peer].socket = std::move(sockets[peer]);
    watch(peers_[peer].socket.get(), static_cast<std::uint32_t>(peer));
  }
  watch(wake_.get(), static_cast<std::uint32_t>(peers_.size()));
}

Control::~Control() {
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    Peer& it = peers_[peer];
    if (!it.socket) continue;
    if (it.life == Life::here) send(static_cast<int>(peer), kGoodbye);
    ::shutdown(it.socket.get(), SHUT_WR);
    // What is unread when a TCP socket is closed becomes a reset, which could overtake the goodbye.
    char scrap[4096];
    const iovec piece = {scrap, sizeof scrap};
    while (receive_some(it.socket, {&piece, 1}).flow == Transfer::Flow::moved) {
    }
  }
}

void Control::fail_gone(int peer) const {
  fail<PeerLost>(where_, "rank {} ({}) {}", peer, peers_[peer].name, peers_[peer].fate);
}

void Control::lose(int peer, const std::string& reason) {
  Peer& it = peers_[peer];
  ::epoll_ctl(ready_.get(), EPOLL_CTL_DEL, it.socket.get(), nullptr);
  if (it.life != Life::here) return;
  it.life = Life::lost;
  it.fate = fmt::format("is lost: {}", reason);
  if (!verdict_) {
    verdict_ = Abort{Abort::Kind::peer_lost, peer,
                     error_message(where_, fmt::format("rank {} ({}) {}", peer, it.name, it.fate))};
  }
}

void Control::suspect(int peer, const std::string& reason) {
  Peer& it = peers_[peer];
  if (it.life != Life::here || it.suspected != Clock::time_point::max()) return;
  it.suspected = Clock::now() + kGrace;
  it.suspicion = reason;
}

void Control::send(int peer, std::uint8_t kind, std::string_view body) {
  Peer& it = peers_[peer];
  if (it.life != Life::here) return;
  it.outbox.push_back(static_cast<char>(kind));
  put(it.outbox, static_cast<std::uint32_t>(body.size()));
  it.outbox += body;
  flush(peer);
}

void Control::flush(int peer) {
  Peer& it = peers_[peer];
  while (!it.outbox.empty()) {
    const iovec piece = {it.outbox.data(), it.outbox.size()};
    const Transfer sent = send_some(it.socket, {&piece, 1});
    // One that is gone is found out by reading: its last words may still be there.
    if (sent.flow == Transfer::Flow::broken) it.outbox.clear();
    if (sent.flow != Transfer::Flow::moved) return;
    it.outbox.erase(0, sent.bytes);
  }
}

void Control::ring(int peer) {
  Peer& it = peers_[peer];
  // If the socket is full there is enough in it to wake the peer.
  if (it.life != Life::here || !it.outbox.empty()) return;
  char bell = kDoorbell;
  const iovec piece = {&bell, 1};
  send_some(it.socket, {&piece, 1});
}

void Control::receive() {
  epoll_event events[16];
  const int n = ::epoll_wait(ready_.get(), events, 16, 0);  // more than 16 are for the next look
  for (int i = 0; i < n; ++i) {
    if (events[i].data.u32 < peers_.size()) receive_from(static_cast<int>(events[i].data.u32));
  }
}

void Control::receive_from(int peer) {
  Peer& it = peers_[peer];
  char bytes[4096];
  const iovec piece = {bytes, sizeof bytes};
  for (;;) {
    const Transfer got = receive_some(it.socket, {&piece, 1});
    if (got.flow == Transfer::Flow::blocked) return;
    if (got.flow == Transfer::Flow::broken) return lose(peer, reason_of(got));
    it.inbox.append(bytes, got.bytes);
    read_frames(peer);
    if (it.life == Life::lost) return;
  }
}

void Control::read_frames(int peer) {
  Peer& it = peers_[peer];
  std::string_view rest = it.inbox;
  while (!rest.empty()) {
    const auto kind = static_cast<std::uint8_t>(rest[0]);
    if (kind == kDoorbell) {
      rest.remove_prefix(1);
      continue;
    }
    std::string_view body = rest.substr(1);
    std::uint32_t length = 0;
    if (!get(body, length)) break;
    if (length > kMaxBody) return lose(peer, fmt::format("it sent a control frame of {} bytes", length));
    if (body.size() < length) break;
    read_frame(peer, kind, body.substr(0, length));
    if (it.life == Life::lost) return;
    rest.remove_prefix(kFrameHead + length);
  }
  it.inbox.erase(0, it.inbox.size() - rest.size());
}

void Control::read_frame(int peer, std::uint8_t kind, std::string_view body) {
  Peer& it = peers_[peer];
  std::uint32_t question = 0;
  bool good = true;
  switch (kind) {
    case kGoodbye:
      it.life = Life::left;
      it.fate = "has left the group";
      break;
    case kAsk:
      good = get(body, question);
      it.wonders = question;
      break;
    case kAnswer: {
      RankState state;
      good = get(body, question) && get(body, state.waits_for);
      state.answered = true;
      state.doing = body;
      if (good && question == question_) answers_[peer] = std::move(state);
      break;
    }
    case kAbort: {
      Abort why;
      good = get(body, why.kind) && why.kind <= Abort::Kind::other && get(body, why.rank);
      why.text = body;
      if (good && !verdict_) verdict_ = std::move(why);
      break;
    }
    default: good = false;
  }
  if (!good) lose(peer, fmt::format("it sent a control frame of unknown kind {}", kind));
}

std::optional<Abort> Control::check(const RankState& mine) {
  receive();
  answers_[rank_] = mine;
  answers_[rank_].answered = true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const int peer = static_cast<int>(i);
    Peer& it = peers_[i];
    if (it.life != Life::here) continue;
    if (it.wonders) {
      std::string body;
      put(body, *it.wonders);
      put(body, mine.waits_for);
      body += std::string_view(mine.doing).substr(0, kMaxText);
      it.wonders.reset();
      send(peer, kAnswer, body);
    } else if (!it.outbox.empty()) {
      flush(peer);
    }
    if (it.suspected != Clock::time_point::max() && Clock::now() >= it.suspected) lose(peer, it.suspicion);
  }
  return verdict_;
}

void Control::abort(const Abort& why) {
  std::string body;
  put(body, why.kind);
  put(body, why.rank);
  body += std::string_view(why.text).substr(0, kMaxText);
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    if (static_cast<int>(peer) != rank_) send(static_cast<int>(peer), kAbort, body);
  }
}

void Control::ask() {
  ++question_;
  std::string body;
  put(body, question_);
  for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
    answers_[peer] = {};
    if (static_cast<int>(peer) != rank_ && peers_[peer].outbox.size() < kMaxOutbox) {
      send(static_cast<int>(peer), kAsk, body);
    }
  }
}

void Control::wait(Clock::time_point until, int also) {
  pollfd polls[2] = {{ready_.get(), POLLIN, 0}, {also, POLLIN, 0}};  // a negative descriptor is passed over
  timespec time{};
  if (until != Clock::time_point::max()) {
    const auto left = std::max<std::int64_t>(0, std::chrono::nanoseconds(until - Clock::now()).count());
    time = {static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  }
  ::ppoll(polls, 2, until == Clock::time_point::max() ? nullptr : &time, nullptr);
  waited_.store(true, std::memory_order_relaxed);
}

void Control::wake() {
  const std::uint64_t one = 1;
  // A counter that is full has woken already.
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
}

void Control::settle() {
  // A wake() that met nobody asleep is left to end the next wait, once: that is cheaper than to look each time.
  if (!waited_.exchange(false, std::memory_order_relaxed)) return;
  std::uint64_t count;
  [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
  receive();
}

}  // namespace lamina::comm
