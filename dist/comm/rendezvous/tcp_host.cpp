#include <poll.h>

#include <algorithm>
#include <set>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/dist/comm/rendezvous/tcp.hpp"

namespace lamina::comm {

namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

constexpr auto kHelloWithin = 10s;     // who has not introduced himself by then is a stray
constexpr std::size_t kStrays = 256;   // connections that have not introduced themselves, at a time
constexpr int kAcceptsATurn = 64;      // so that a flood of them does not keep us from the others
constexpr auto kNoDescriptors = 50ms;  // accept() fails: a pause
constexpr auto kPortIsFreed = 5s;      // by a run that was killed just now
constexpr auto kLatecomers = 2s;       // after a mismatch: for those that are still on their way
constexpr auto kLinger = 1s;           // for verdicts to be read

/// A connection that has not introduced itself yet, or that is being told why it cannot stay.
struct Stranger {
  explicit Stranger(Descriptor socket) : channel(std::move(socket)), until(Time::now() + kHelloWithin) {}
  Channel channel;
  Deadline until;
  bool leaving = false;
  bool done = false;

  void tell(const std::shared_ptr<const std::string>& verdict) {
    channel.send(verdict);
    leaving = true;
    until = Time::now() + kLinger;
  }
  /// Sends what is left of the verdict and reads on to the end: a socket closed with unread bytes would take the
  /// verdict with it.
  void leave() {
    const bool alive = channel.flush();
    if (alive && channel.flushed()) channel.end();
    Channel::Read read;
    while ((read = channel.read(Rendezvous::kMaxBlob + 64)) == Channel::Read::frame) {
    }
    done = !alive || read != Channel::Read::nothing;
  }
};

struct Member {
  Hello hello;
  SocketAddress from;
  std::unique_ptr<Channel> channel;
  std::optional<std::string> blob;  // of this exchange
};

class TcpHost final : public CheckedRendezvous {
 public:
  TcpHost(const Meeting& meeting, HostPort where, Descriptor listener)
      : meeting_(meeting),
        where_(std::move(where)),
        listener_(std::move(listener)),
        members_(static_cast<std::size_t>(meeting.size)) {}

  std::string address() const override { return address_; }

 protected:
  std::vector<std::string> meet(const std::string& blob) override;

 private:
  void listen();
  void turn(Deadline until);
  void accept();
  void hear(Stranger& stranger);
  void greet(Stranger& stranger, const Hello& guest);
  void hear(Member& member);
  void close_doors();
  void sooner(std::chrono::milliseconds left, std::int64_t rank);
  std::vector<int> missing() const;
  [[noreturn]] void give_up();
  [[noreturn]] void end_with(const Verdict& verdict);

  Meeting meeting_;
  HostPort where_;
  Descriptor listener_;
  std::string address_;
  Hello me_;
  std::vector<Member> members_;  // by rank; 0 stays empty
  std::vector<std::unique_ptr<Stranger>> strangers_;
  std::vector<std::string> refused_;  // of other jobs, for a rank we are waiting for
  std::set<std::int64_t> refused_ranks_;
  int meetings_ = 0;
  Deadline start_, deadline_;
  std::int64_t deadline_of_ = 0;
  Deadline deaf_until_;
  bool complete_ = false;
  // Once it is over: what newcomers are told, and who has been.
  std::shared_ptr<const std::string> verdict_;
  std::set<std::int64_t> told_;
};

// ---- the place ----

std::vector<SocketAddress> places_to_listen(const HostPort& where) {
  std::vector<SocketAddress> out;
  // A host's own name may lead to a loopback address on that host alone, or to one that a router translates: under a
  // name the host listens everywhere.
  if (const auto numeric = numeric_address(where.host, where.port)) {
    out.push_back(*numeric);
  } else if (where.host == "localhost") {
    return resolve(where.host, where.port);
  }
  for (const char* any : {"::", "0.0.0.0"}) out.push_back(numeric_address(any, where.port).value());
  return out;
}

void TcpHost::listen() {
  const std::vector<SocketAddress> places = places_to_listen(where_);
  const Deadline patience = std::min<Deadline>(deadline_, start_ + kPortIsFreed);
  for (;;) {
    std::error_code error;
    SocketAddress place;
    for (const SocketAddress& at : places) {
      place = at;
      listener_ = listen_on(at, error);
      if (error != std::errc::address_not_available && error != std::errc::address_family_not_supported) break;
    }
    if (!error) return;
    if (error != std::errc::address_in_use) {
      fail<IoError>("rendezvous", "rank 0 cannot listen at {}: {}", to_string(place), error.message());
    }
    // A second rank 0, or a run that was killed and is not gone yet?
    const SocketAddress there = place.is_any() ? numeric_address("127.0.0.1", where_.port).value() : place;
    const Introduction other = introduce(me_, there, patience);
    if (other.refused) raise(*other.refused);
    if (Time::now() >= patience) {
      fail<IoError>("rendezvous", "rank 0 cannot listen at {}: {}; who listens there {}", to_string(place),
                    error.message(), other.failure);
    }
    std::this_thread::sleep_for(20ms);
  }
}

// ---- an exchange ----

std::vector<std::string> TcpHost::meet(const std::string& blob) {
  ++meetings_;
  start_ = Time::now();
  deadline_ = start_ + meeting_.timeout;
  deadline_of_ = 0;
  me_ = hello_of(meeting_, deadline_);
  if (!complete_ && !listener_) listen();
  for (Member& member : members_) member.blob.reset();
  members_[0].blob = blob;

  while (!missing().empty()) {
    if (Time::now() >= deadline_) give_up();
    turn(deadline_);
  }
  if (!complete_) close_doors();

  std::vector<std::string> blobs;
  blobs.reserve(members_.size());
  for (Member& member : members_) blobs.push_back(std::move(*member.blob));
  const auto answer = encode(Frame{.kind = Frame::Kind::blobs, .payload = encode_blobs(blobs)});
  for (Member& member : members_) {
    if (member.channel) member.channel->send(answer);
  }
  // Who dies now is missed at the next exchange, or by the transport.
  const auto busy = [](Member& member) {
    return member.channel && member.channel->flush() && !member.channel->flushed();
  };
  while (std::any_of(members_.begin(), members_.end(), busy) && Time::now() < deadline_) turn(deadline_);
  return blobs;
}

std::vector<int> TcpHost::missing() const {
  std::vector<int> out;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    if (!members_[r].blob) out.push_back(static_cast<int>(r));
  }
  return out;
}

void TcpHost::sooner(std::chrono::milliseconds left, std::int64_t rank) {
  const Deadline theirs = Time::now() + left;
  if (theirs >= deadline_) return;
  deadline_ = theirs;
  deadline_of_ = rank;
}

void TcpHost::give_up() {
  const std::vector<int> absent = missing();
  const double waited = std::chrono::duration<double>(Time::now() - start_).count();
  std::string text = fmt::format("{} of {} {} not come to {}", list_ranks(absent), meeting_.size,
                                 absent.size() == 1 ? "has" : "have", meeting_.place);
  if (meetings_ > 1) text += fmt::format(" for exchange {}", meetings_);
  text += fmt::format(" by the deadline of rank {}; rank 0 waited {:.1f} s", deadline_of_, waited);
  for (const std::string& who : refused_) text += "; " + who;
  const bool mistaken = std::any_of(absent.begin(), absent.end(), [&](int r) { return refused_ranks_.contains(r); });
  end_with({mistaken ? Verdict::Kind::mismatch : Verdict::Kind::timeout, text});
}

// ---- one turn of the loop ----

void TcpHost::turn(Deadline until) {
  std::vector<pollfd> polls;
  if (Time::now() < deaf_until_) until = std::min(until, deaf_until_);
  const bool hears = listener_ && Time::now() >= deaf_until_;
  if (hears) polls.push_back({listener_.get(), POLLIN, 0});
  const auto add = [&](const Channel& channel, short in = POLLIN) {
    const auto events = static_cast<short>(channel.flushed() ? in : in | POLLOUT);
    polls.push_back({events == 0 ? -1 : channel.socket().get(), events, 0});
  };
  for (const auto& stranger : strangers_) {
    add(stranger->channel);
    until = std::min(until, stranger->until);
  }
  const std::size_t strangers = strangers_.size();
  const bool all_in = missing().empty();
  std::vector<Member*> polled;
  for (Member& member : members_) {
    if (!member.channel) continue;
    add(*member.channel, all_in ? 0 : POLLIN);  // the blob of its next exchange waits in the socket
    polled.push_back(&member);
  }
  if (::poll(polls.data(), polls.size(), poll_timeout(until)) < 0) return;  // interrupted; the caller looks at the time

  // Members first: a stranger that is heard may become one, or end the meeting.
  std::size_t at = (hears ? 1 : 0) + strangers;
  for (Member* member : polled) {
    if (polls[at++].revents != 0) hear(*member);
  }
  at = hears ? 1 : 0;
  for (std::size_t i = 0; i < strangers; ++i) {
    if (polls[at + i].revents != 0) hear(*strangers_[i]);
  }
  if (hears && polls[0].revents != 0) accept();
  std::erase_if(strangers_, [](const auto& stranger) { return stranger->done || Time::now() >= stranger->until; });
}

void TcpHost::accept() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    std::error_code error;
    Descriptor socket = accept_from(listener_, error);
    if (!socket && !error) return;
    // Room is made by who has been silent for longest.
    if (error || strangers_.size() >= kStrays) {
      const auto silent = std::find_if(strangers_.begin(), strangers_.end(), [](auto& s) { return !s->leaving; });
      if (silent != strangers_.end()) strangers_.erase(silent);
    }
    if (error) {
      deaf_until_ = Time::now() + kNoDescriptors;
      return;
    }
    set_no_delay(socket);
    strangers_.push_back(std::make_unique<Stranger>(std::move(socket)));
    hear(*strangers_.back());
  }
}

void TcpHost::hear(Stranger& stranger) {
  if (stranger.leaving) return stranger.leave();
  switch (stranger.channel.read(kMaxHello)) {
    case Channel::Read::nothing: return;
    case Channel::Read::frame: break;
    default: stranger.done = true; return;
  }
  const Frame frame = stranger.channel.frame();
  std::optional<Hello> guest;
  if (frame.kind == Frame::Kind::hello) guest = decode_hello(frame.payload, frame.version);
  if (!guest) {
    stranger.done = true;
  } else {
    greet(stranger, *guest);
  }
}

void TcpHost::greet(Stranger& stranger, const Hello& guest) {
  const auto refuse = [&](std::string text) {
    stranger.tell(encode(Frame{.kind = Frame::Kind::verdict, .payload = encode(Verdict{.text = std::move(text)})}));
    stranger.leave();
  };
  if (verdict_) {
    told_.insert(guest.rank);
    stranger.tell(verdict_);
    return stranger.leave();
  }
  if (const auto text = other_job(me_, guest)) {
    if (guest.size == me_.size && refused_ranks_.insert(guest.rank).second) refused_.push_back(*text);
    return refuse(*text);
  }
  std::optional<std::string> text = misfit(me_, guest);
  Member* place = text ? nullptr : &members_[static_cast<std::size_t>(guest.rank)];
  if (place && place->channel) text = came_twice(place->hello, guest);
  if (text && complete_) return refuse(*text);  // too late to spoil anything
  if (text) {
    told_.insert(guest.rank);
    Verdict verdict{.text = *text};
    stranger.tell(encode(Frame{.kind = Frame::Kind::verdict, .payload = encode(verdict)}));
    end_with(verdict);
  }
  place->hello = guest;
  place->from = SocketAddress::of_peer(stranger.channel.socket());
  sooner(guest.left, guest.rank);
  place->channel = std::make_unique<Channel>(std::move(stranger.channel));
  stranger.done = true;
  place->channel->send(encode(Frame{.kind = Frame::Kind::welcome, .payload = encode(me_)}));
  place->channel->flush();
}

void TcpHost::hear(Member& member) {
  member.channel->flush();
  if (missing().empty()) return;
  switch (member.channel->read(kMaxBlob + 64)) {
    case Channel::Read::nothing: return;
    case Channel::Read::gone: {
      const int error = member.channel->error();
      member.channel.reset();
      end_with(
          {Verdict::Kind::peer_lost,
           fmt::format("{} at {} is gone: {}", member.hello.name(), to_string(member.from),
                       error == 0 ? std::string("it closed its connection") : std::generic_category().message(error))});
    }
    case Channel::Read::frame: {
      const Frame& frame = member.channel->frame();
      WireReader reader(frame.payload);
      const std::uint64_t left = reader.number();
      const std::string_view blob = reader.text();
      if (frame.kind == Frame::Kind::blob && reader.done() && !member.blob) {
        member.blob = blob;
        sooner(std::chrono::milliseconds(std::min<std::uint64_t>(left, std::uint64_t{1} << 40)), member.hello.rank);
        return;
      }
      break;
    }
    case Channel::Read::garbage: break;
  }
  end_with({.text = fmt::format("{} sends a message that is not understood", member.hello.name())});
}

// ---- ends ----

void TcpHost::close_doors() {
  complete_ = true;
  // Who is at the door already hears that there is no place for him.
  if (listener_) accept();
  strangers_.clear();
  listener_.close();
  for (const Member& member : members_) {
    if (!member.channel) continue;
    const SocketAddress reached = SocketAddress::of(member.channel->socket());
    if (address_.empty() || !reached.is_loopback()) address_ = reached.host_and_scope();
    if (!reached.is_loopback()) break;
  }
}

void TcpHost::end_with(const Verdict& verdict) {
  verdict_ = encode(Frame{.kind = Frame::Kind::verdict, .payload = encode(verdict)});
  for (Member& member : members_) {
    if (!member.channel) continue;
    told_.insert(member.hello.rank);
    auto stranger = std::make_unique<Stranger>(Descriptor());
    stranger->channel = std::move(*member.channel);
    stranger->tell(verdict_);
    stranger->leave();
    strangers_.push_back(std::move(stranger));
    member.channel.reset();
  }
  if (listener_) accept();
  const bool others_come = listener_ && Time::now() < deadline_;
  const Deadline latest = Time::now() + kLatecomers, linger = Time::now() + kLinger;
  for (;;) {
    const bool somebody_leaves =
        std::any_of(strangers_.begin(), strangers_.end(), [](const auto& s) { return s->leaving && !s->done; });
    const bool somebody_comes = others_come && static_cast<int>(told_.size()) < meeting_.size - 1;
    const Deadline until = somebody_comes ? latest : linger;
    if ((!somebody_leaves && !somebody_comes) || Time::now() >= until) break;
    turn(until);
  }
  strangers_.clear();
  listener_.close();
  raise(verdict);
}

}  // namespace

std::unique_ptr<Rendezvous> tcp_host(const Meeting& meeting, const HostPort& where, Descriptor listener) {
  return std::make_unique<TcpHost>(meeting, where, std::move(listener));
}

}  // namespace lamina::comm
