#include "lamina/dist/comm/transport/tcp.hpp"

#include <fmt/core.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/blob.hpp"
#include "lamina/dist/comm/transport/control.hpp"
#include "lamina/dist/comm/transport/interfaces.hpp"
#include "lamina/dist/comm/transport/mesh.hpp"

namespace lamina::comm {

namespace {

using Flow = Transfer::Flow;

constexpr std::int64_t kStripe = 64 << 10;  // of messages over several connections
constexpr std::size_t kAhead = 16 << 10;    // read beyond what was asked for: small messages in one call
constexpr std::size_t kShown = 256 << 10;   // what take() is shown at once
constexpr std::size_t kMostSent = 1 << 20;  // in one call, so that receiving gets its turn
constexpr std::size_t kMostPieces = 64;     // in one call

// What comes in on a connection. Some bytes beyond those asked for are read ahead.
class Inflow {
 public:
  /// What has been read ahead, `most` bytes of it; the caller uses all of them.
  std::span<const std::byte> ahead(std::int64_t most) noexcept {
    const std::size_t n = std::min(end_ - begin_, static_cast<std::size_t>(most));
    const std::span<const std::byte> bytes(buffer_.data() + begin_, n);
    begin_ += n;
    return bytes;
  }
  /// With nothing read ahead: reads into `to`, and ahead. Result.bytes counts those in `to`, which may be empty.
  Transfer read(const Descriptor& socket, std::span<std::byte> to) noexcept {
    const iovec pieces[] = {{to.data(), to.size()}, {buffer_.data(), buffer_.size()}};
    Transfer got = receive_some(socket, std::span(pieces).subspan(to.empty() ? 1 : 0));
    begin_ = 0;
    end_ = got.bytes > to.size() ? got.bytes - to.size() : 0;
    got.bytes -= end_;
    return got;
  }

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kAhead);
  std::size_t begin_ = 0, end_ = 0;
};

// What one connection still has to send of a message.
struct Outflow {
  std::size_t header_left = 0;  // only of the first connection
  std::int64_t at = 0;          // in the message
  std::size_t piece = 0;        // that at lies in
  std::int64_t piece_at = 0;    // where that begins
};

struct Peer {
  std::vector<Descriptor> sockets;
  bool ended = false;  // a socket broke, or the other side closed it
  // sending
  bool sending = false;
  MessageHeader sent_header;
  std::vector<Outflow> out;
  std::uint64_t taken = 0;
  // receiving
  std::vector<Inflow> in;
  MessageHeader header;
  std::size_t header_got = 0;
  std::int64_t at = 0;  // in the message
  bool in_message = false;
};

class TcpTransport final : public ControlledTransport {
 public:
  TcpTransport(int rank, std::vector<std::vector<Descriptor>> data, std::vector<Descriptor> control,
               std::vector<std::string> names)
      : ControlledTransport("tcp", rank, std::move(control), std::move(names)),
        peers_(data.size()),
        shown_(kShown),
        ready_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < data.size(); ++i) {
      Peer& peer = peers_[i];
      peer.sockets = std::move(data[i]);
      peer.out.resize(peer.sockets.size());
      peer.in.resize(peer.sockets.size());
      for (const Descriptor& socket : peer.sockets) {
        // Edges: bytes that nobody wants yet must not end every sleep.
        epoll_event event{};
        event.events = EPOLLIN | EPOLLOUT | EPOLLET;
        if (::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
          fail<IoError>("tcp", "cannot watch a socket: {}", text_of_errno(errno));
        }
      }
    }
  }

  std::string name() const override { return "tcp"; }
  Link link() const noexcept override { return {20e-6, 2e9}; }

  bool post(int to, Outgoing& message) override {
    control_.require(to);
    Peer& peer = peers_[to];
    if (!peer.sending) {
      peer.sending = true;
      peer.sent_header = message.header();
      for (std::size_t c = 0; c < peer.out.size(); ++c) peer.out[c] = {0, static_cast<std::int64_t>(c) * kStripe};
      peer.out[0].header_left = sizeof(MessageHeader);
    }
    bool whole = true;
    for (std::size_t c = 0; c < peer.out.size(); ++c) whole = send_on(to, c, message) && whole;
    if (!whole) return false;
    peer.sending = false;
    ++peer.taken;
    return true;
  }
  std::uint64_t taken(int peer) override { return peers_[peer].taken; }

  const MessageHeader* front(int from) override {
    Peer& peer = peers_[from];
    if (peer.in_message) return &peer.header;
    auto* bytes = reinterpret_cast<std::byte*>(&peer.header);
    for (;;) {
      const auto wanted = static_cast<std::int64_t>(sizeof(MessageHeader) - peer.header_got);
      const std::span<const std::byte> ahead = peer.in[0].ahead(wanted);
      std::copy(ahead.begin(), ahead.end(), bytes + peer.header_got);
      peer.header_got += ahead.size();
      if (peer.header_got == sizeof(MessageHeader)) break;
      if (ahead.empty() && read(from, 0, {}).flow != Flow::moved) return nullptr;
    }
    peer.header_got = 0;
    if (!is_valid(peer.header)) fail<IoError>("tcp", "rank {} is broken: it sent something else than a header", from);
    peer.in_message = true;
    peer.at = 0;
    return &peer.header;
  }

  bool left(int peer) override { return control_.left(peer) && front(peer) == nullptr && peers_[peer].ended; }

  bool pull(int from, Incoming& to) override {
    Peer& peer = peers_[from];
    if (front(from) == nullptr) return false;
    while (peer.at < peer.header.bytes) {
      const auto [c, most] = stretch(peer, peer.at, peer.header.bytes);
      const std::span<const std::byte> ahead = peer.in[c].ahead(most);
      peer.at += static_cast<std::int64_t>(ahead.size());
      if (!ahead.empty()) {
        to.take(ahead);
        continue;
      }
      std::span<std::byte> target = to.writable();
      const bool in_place = !target.empty();
      if (!in_place) target = shown_;
      target = target.first(std::min(target.size(), static_cast<std::size_t>(most)));
      const Transfer got = read(from, c, target);
      if (got.flow != Flow::moved) return false;
      peer.at += static_cast<std::int64_t>(got.bytes);
      if (in_place) {
        to.wrote(got.bytes);
      } else {
        to.take(target.first(got.bytes));
      }
    }
    peer.in_message = false;
    return true;
  }

  void arm() override {
    control_.settle();
    // What these events tell of is there already. Only what comes from now on is news.
    epoll_event events[16];
    while (::epoll_wait(ready_.get(), events, 16, 0) == 16) {
    }
  }
  void disarm() override { control_.settle(); }
  void sleep(Clock::time_point until) override { control_.wait(until, ready_.get()); }

 private:
  // Which connection carries the byte at `at` of a message, and how many from there on lie on it together.
  static std::pair<std::size_t, std::int64_t> stretch(const Peer& peer, std::int64_t at, std::int64_t bytes) noexcept {
    const std::size_t connections = peer.sockets.size();
    if (connections == 1) return {0, bytes - at};
    return {static_cast<std::size_t>(at / kStripe) % connections, std::min(bytes - at, kStripe - at % kStripe)};
  }

  void end(int rank, const Transfer& broken) {
    peers_[rank].ended = true;
    control_.suspect(rank, reason_of(broken));
  }

  Transfer read(int from, std::size_t connection, std::span<std::byte> to) {
    const Transfer got = peers_[from].in[connection].read(peers_[from].sockets[connection], to);
    if (got.flow == Flow::broken) end(from, got);
    return got;
  }

  // True once the connection has all it has to carry of the message.
  bool send_on(int to, std::size_t connection, Outgoing& message) {
    Peer& peer = peers_[to];
    Outflow& out = peer.out[connection];
    const std::int64_t bytes = peer.sent_header.bytes;
    for (;;) {
      iovec pieces[kMostPieces + 1];
      std::size_t count = 0;
      if (out.header_left > 0) {
        auto* header = reinterpret_cast<std::byte*>(&peer.sent_header);
        pieces[count++] = {header + sizeof(MessageHeader) - out.header_left, out.header_left};
      }
      const std::int64_t together = out.at < bytes ? stretch(peer, out.at, bytes).second : 0;
      count += gather(out, message, std::min<std::int64_t>(together, kMostSent), pieces + count);
      if (count == 0) return true;
      const Transfer sent = send_some(peer.sockets[connection], {pieces, count});
      if (sent.flow == Flow::broken) end(to, sent);
      if (sent.flow != Flow::moved) return false;

      const std::size_t of_header = std::min(out.header_left, sent.bytes);
      const auto of_payload = static_cast<std::int64_t>(sent.bytes - of_header);
      out.header_left -= of_header;
      out.at += of_payload;
      message.advance(static_cast<std::size_t>(of_payload));
      if (of_payload == together && out.at < bytes) {  // to the connection's next stripe
        out.at += static_cast<std::int64_t>(peer.sockets.size() - 1) * kStripe;
      }
    }
  }

  // The message's next `most` bytes for a connection, as they lie in memory.
  static std::size_t gather(Outflow& out, const Outgoing& message, std::int64_t most, iovec* to) noexcept {
    const std::span<const std::span<const std::byte>> all = message.pieces();
    const auto size = [&](std::size_t piece) { return static_cast<std::int64_t>(all[piece].size()); };
    while (most > 0 && out.piece_at + size(out.piece) <= out.at) out.piece_at += size(out.piece++);
    std::size_t count = 0;
    std::int64_t skip = out.at - out.piece_at;
    for (std::size_t piece = out.piece; most > 0 && count < kMostPieces; ++piece, skip = 0) {
      const std::int64_t n = std::min(size(piece) - skip, most);
      if (n == 0) continue;
      to[count++] = piece_of(all[piece].subspan(static_cast<std::size_t>(skip), static_cast<std::size_t>(n)));
      most -= n;
    }
    return count;
  }

  std::vector<Peer> peers_;
  std::vector<std::byte> shown_;
  Descriptor ready_;  // epoll: the data sockets
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

}  // namespace

std::unique_ptr<Transport> tcp_transport(Rendezvous& rendezvous, int rank, int size, const TcpOptions& options) {
  if (options.port < 0 || options.port > 65535) fail<ValueError>("tcp", "port {}: 0 to 65535", options.port);
  if (options.connections < 1 || options.connections > 64) {
    fail<ValueError>("tcp", "{} connections: 1 to 64", options.connections);
  }
  const auto deadline = Clock::now() + options.timeout;
  const Listener listener = listen_for_peers(options.bind, rendezvous.address(), options.port);
  const Host host = this_host();
  enum { kId, kIdentity, kName, kConnections, kPort, kHosts };
  std::string hosts;
  for (const std::string& each : listener.hosts) hosts += (hosts.empty() ? "" : ",") + each;
  const Blob mine = {"tcp",
                     {to_string(random_id()), host.identity, host.name, std::to_string(options.connections),
                      std::to_string(listener.address.port()), hosts}};
  const std::vector<Blob> blobs = exchange_blobs(rendezvous, mine, rank, size);

  MeshPlan plan;
  plan.where = "tcp";
  plan.rank = rank;
  plan.size = size;
  plan.channels = 1 + options.connections;
  plan.world = random_id_from(blobs[0].fields[kId]);
  plan.deadline = deadline;
  std::vector<std::string> names;
  for (int peer = 0; peer < size; ++peer) {
    const std::vector<std::string>& fields = blobs[peer].fields;
    if (fields[kConnections] != blobs[0].fields[kConnections]) {
      fail<Mismatch>("tcp", "rank {} wants {} connections a pair, rank 0 {}", peer, fields[kConnections],
                     blobs[0].fields[kConnections]);
    }
    // Ranks of one host prefer loopback if it is offered; it is no use to the others.
    std::vector<SocketAddress> near, far;
    for (const std::string& text : split(fields[kHosts], ',')) {
      SocketAddress address(text, std::atoi(fields[kPort].c_str()));
      // The number of an interface is a matter of this host.
      if (address.is_link_local()) address.set_scope(listener.address.scope());
      (address.is_loopback() ? near : far).push_back(address);
    }
    for (int other = 0; other < size; ++other) {
      if (far.empty() && blobs[other].fields[kIdentity] != fields[kIdentity]) {
        fail<ValueError>("tcp",
                         "rank {} on '{}' listens on {} only, where rank {} on '{}' cannot reach it: bind it to an "
                         "address or interface of the network between them",
                         peer, fields[kName], fields[kHosts], other, blobs[other].fields[kName]);
      }
    }
    std::vector<SocketAddress>& reached = plan.reached.emplace_back();
    if (fields[kIdentity] == host.identity) reached = near;
    reached.insert(reached.end(), far.begin(), far.end());
    names.push_back(reached.empty() ? fields[kName] : fmt::format("{} on '{}'", to_string(reached[0]), fields[kName]));
  }
  std::vector<std::vector<Descriptor>> data = connect_mesh(listener.socket, plan);
  std::vector<Descriptor> control(size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    control[peer] = std::move(data[peer].front());
    data[peer].erase(data[peer].begin());
  }
  return std::make_unique<TcpTransport>(rank, std::move(data), std::move(control), std::move(names));
}

}  // namespace lamina::comm
