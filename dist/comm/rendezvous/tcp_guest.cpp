#include <poll.h>

#include <algorithm>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/dist/comm/rendezvous/tcp.hpp"

namespace lamina::comm {

namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;

constexpr auto kConnect = 5s;       // of one attempt: a packet that was dropped silently is not waited for for ever
constexpr auto kNameUnknown = 30s;  // names may appear late, but a wrong one should be heard of
constexpr auto kLongestPause = 500ms;
constexpr auto kVerdictOnItsWay =
    500ms;  // the host ends the meeting at our deadline; its word for it is the better one

double seconds_since(Time::time_point start) { return std::chrono::duration<double>(Time::now() - start).count(); }

class TcpGuest final : public CheckedRendezvous {
 public:
  TcpGuest(const Meeting& meeting, HostPort where) : meeting_(meeting), where_(std::move(where)) {}

  std::string address() const override { return address_; }

 protected:
  std::vector<std::string> meet(const std::string& blob) override;

 private:
  void join(Deadline deadline);
  std::string host() const { return fmt::format("{} at {}", host_.name(), meeting_.place); }

  Meeting meeting_;
  HostPort where_;
  std::unique_ptr<Channel> channel_;
  Hello host_;
  std::string address_;
};

void TcpGuest::join(Deadline deadline) {
  const auto start = Time::now();
  std::string tried;
  bool no_answer = false;
  auto pause = 10ms;
  for (int attempt = 1;; ++attempt) {
    std::vector<SocketAddress> addresses;
    try {
      addresses = resolve(where_.host, where_.port);
      tried.clear();
    } catch (const IoError& error) {
      if (Time::now() >= std::min(deadline, start + kNameUnknown)) throw;
      tried = error.what();
    }
    bool something_else = false;
    for (const SocketAddress& address : addresses) {
      Introduction met = introduce(hello_of(meeting_, deadline), address, deadline);
      if (met.refused) raise(*met.refused);
      if (met.channel) {
        channel_ = std::move(met.channel);
        host_ = std::move(*met.host);
        address_ = SocketAddress::of(channel_->socket()).host_and_scope();
        return;
      }
      tried += fmt::format("{}{} ({})", tried.empty() ? "" : ", ", to_string(address), met.failure);
      something_else |= met.no_host;
      no_answer |= met.no_answer;
    }
    if (something_else) fail<IoError>("rendezvous", "no rank 0 at {}: tried {}", meeting_.place, tried);
    if (Time::now() >= deadline) {
      fail<Timeout>("rendezvous", "rank 0 has {} at {} for {:.1f} s: tried {}, {} time{}",
                    no_answer ? "not answered" : "not come", meeting_.place, seconds_since(start), tried, attempt,
                    attempt == 1 ? "" : "s");
    }
    // Ranks that were started together do not knock together.
    const auto jitter = pause * ((meeting_.rank * 7) % 16) / 32;
    std::this_thread::sleep_until(std::min<Deadline>(deadline, Time::now() + pause + jitter));
    pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
  }
}

std::vector<std::string> TcpGuest::meet(const std::string& blob) {
  const auto start = Time::now();
  const Deadline deadline = start + meeting_.timeout;
  if (!channel_) join(deadline);
  Frame mine;
  mine.kind = Frame::Kind::blob;
  put_number(mine.payload, static_cast<std::uint64_t>(hello_of(meeting_, deadline).left.count()));
  put_text(mine.payload, blob);
  channel_->send(encode(mine));
  const std::uint64_t most = (Rendezvous::kMaxBlob + 8) * static_cast<std::uint64_t>(meeting_.size);
  for (;;) {
    const bool sending = channel_->flush();  // when it fails the reason may be there to be read
    switch (channel_->read(most)) {
      case Channel::Read::nothing: break;
      case Channel::Read::gone:
        fail<PeerLost>("rendezvous", "{} is gone: it {}", host(),
                       channel_->error() == 0 ? std::string("closed its connection")
                                              : "was lost: " + std::generic_category().message(channel_->error()));
      case Channel::Read::garbage:
        fail<Mismatch>("rendezvous", "{} sends what is no message: {}", host(), quote(channel_->garbage()));
      case Channel::Read::frame: {
        const Frame& frame = channel_->frame();
        if (frame.kind == Frame::Kind::verdict) {
          if (const auto verdict = decode_verdict(frame.payload)) raise(*verdict);
        } else if (frame.kind == Frame::Kind::blobs) {
          std::vector<std::string> blobs = decode_blobs(frame.payload, meeting_.size);
          if (!blobs.empty()) return blobs;
        }
        fail<Mismatch>("rendezvous", "{} sends a message that is not understood", host());
      }
    }
    const auto events = static_cast<short>(channel_->flushed() || !sending ? POLLIN : POLLIN | POLLOUT);
    if (!wait_until(channel_->socket(), events, deadline + kVerdictOnItsWay)) {
      fail<Timeout>("rendezvous", "{} has not answered for {:.1f} s", host(), seconds_since(start));
    }
  }
}

}  // namespace

Introduction introduce(const Hello& hello, const SocketAddress& to, Deadline deadline) {
  Introduction out;
  std::error_code error;
  auto channel = std::make_unique<Channel>(connect_to(to, std::min<Deadline>(deadline, Time::now() + kConnect), error));
  if (error) {
    out.failure = error.message();
    return out;
  }
  set_no_delay(channel->socket());
  channel->send(encode(Frame{.kind = Frame::Kind::hello, .payload = encode(hello)}));
  channel->flush();  // so few bytes fit at once
  for (;;) {
    switch (channel->read(1 << 16)) {
      case Channel::Read::nothing: break;
      case Channel::Read::gone: out.failure = "closed the connection before it answered"; return out;
      case Channel::Read::garbage:
        out.no_host = true;
        out.failure = "is something else, it says " + quote(channel->garbage());
        return out;
      case Channel::Read::frame: {
        const Frame& frame = channel->frame();
        if (frame.kind == Frame::Kind::verdict) out.refused = decode_verdict(frame.payload);
        if (frame.kind == Frame::Kind::welcome) out.host = decode_hello(frame.payload, frame.version);
        if (out.host) out.channel = std::move(channel);
        if (!out.host && !out.refused) {
          out.no_host = true;
          out.failure = "sends a message that is not understood";
        }
        return out;
      }
    }
    if (!wait_until(channel->socket(), POLLIN, deadline + kVerdictOnItsWay)) {
      out.no_answer = true;
      out.failure = "took the connection and says nothing";
      return out;
    }
  }
}

std::unique_ptr<Rendezvous> tcp_guest(const Meeting& meeting, const HostPort& where) {
  return std::make_unique<TcpGuest>(meeting, where);
}

}  // namespace lamina::comm
