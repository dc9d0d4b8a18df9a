#include "lamina/dist/comm/transport/socket.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <limits>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

std::atomic<bool> cutting{false};

// The pieces as they are, or the first few bytes of the first that has any.
std::span<const iovec> cut(std::span<const iovec> pieces, iovec& one) noexcept {
  if (!cutting.load(std::memory_order_relaxed)) return pieces;
  static std::atomic<std::uint32_t> turn{1};
  const std::uint32_t mixed = turn.fetch_add(1, std::memory_order_relaxed) * 2654435761u;
  for (const iovec& piece : pieces) {
    if (piece.iov_len == 0) continue;
    one = {piece.iov_base, std::min<std::size_t>(piece.iov_len, 1 + (mixed >> 16) % 7)};
    return {&one, 1};
  }
  return pieces;
}

// One piece goes by the shorter way through the kernel.
template <class One, class Many>
Transfer attempt(std::span<const iovec> pieces, One one_piece, Many many) noexcept {
  iovec one;
  pieces = cut(pieces, one);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  for (;;) {
    const ssize_t n = pieces.size() == 1 ? one_piece(pieces[0].iov_base, pieces[0].iov_len) : many(&message);
    if (n >= 0) return {Transfer::Flow::moved, static_cast<std::size_t>(n), 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return {Transfer::Flow::blocked, 0, 0};
    if (errno != EINTR) return {Transfer::Flow::broken, 0, errno};
  }
}

std::error_code code_of(int error) { return {error, std::generic_category()}; }

void set(const Descriptor& socket, int level, int option, int value) noexcept {
  (void)::setsockopt(socket.get(), level, option, &value, sizeof value);
}

Descriptor stream_socket(int family, std::error_code& error) noexcept {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = socket ? std::error_code() : code_of(errno);
  return socket;
}

[[noreturn]] void fail_gone(std::string_view peer, int error) {
  fail<PeerLost>(
      "socket", "{} {}", peer,
      error == 0 ? std::string("closed its connection") : "is gone: " + std::generic_category().message(error));
}

}  // namespace

// ---- connections ----

Descriptor stream_socket(int family) {
  std::error_code error;
  Descriptor socket = stream_socket(family, error);
  if (error) fail<IoError>("socket", "cannot make a socket: {}", error.message());
  return socket;
}

Descriptor listen_on(const SocketAddress& at, std::error_code& error) noexcept {
  Descriptor socket = stream_socket(at.family(), error);
  if (error) return {};
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // what a killed run left in TIME_WAIT does not hold the port
  if (at.family() == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, at.is_any() ? 0 : 1);
  if (::bind(socket.get(), at.get(), at.length()) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    error = code_of(errno);
    return {};
  }
  return socket;
}

Descriptor listen_on(const SocketAddress& at) {
  std::error_code error;
  Descriptor socket = listen_on(at, error);
  if (error) fail<IoError>("socket", "cannot listen at {}: {}", to_string(at), error.message());
  return socket;
}

Descriptor connect_to(const SocketAddress& to, Deadline deadline, std::error_code& error) noexcept {
  Descriptor socket = stream_socket(to.family(), error);
  if (error) return {};
  // Interrupted or not, the connection goes on being made.
  if (::connect(socket.get(), to.get(), to.length()) != 0 && errno != EINPROGRESS && errno != EINTR) {
    error = code_of(errno);
    return {};
  }
  if (!wait_until(socket, POLLOUT, deadline)) {
    error = std::make_error_code(std::errc::timed_out);
    return {};
  }
  int result = 0;
  socklen_t size = sizeof result;
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &result, &size) != 0) result = errno;
  if (result == 0 && SocketAddress::of(socket) == SocketAddress::of_peer(socket)) result = ECONNREFUSED;
  if (result != 0) {
    error = code_of(result);
    return {};
  }
  return socket;
}

Descriptor connect_to(const SocketAddress& to, Deadline deadline) {
  std::error_code error;
  Descriptor socket = connect_to(to, deadline, error);
  if (error) fail<IoError>("socket", "cannot connect to {}: {}", to_string(to), error.message());
  return socket;
}

Descriptor accept_from(const Descriptor& listener, std::error_code& error) noexcept {
  error = {};
  for (;;) {
    Descriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) return socket;
    if (errno == EAGAIN) return {};
    // accept(2) also reports what went wrong with a connection before it was accepted: the next one may be well.
    constexpr int passing[] = {EINTR,     ECONNABORTED, EPROTO,       ENETDOWN,   ENOPROTOOPT,
                               EHOSTDOWN, ENONET,       EHOSTUNREACH, ENETUNREACH};
    if (std::find(std::begin(passing), std::end(passing), errno) != std::end(passing)) continue;
    error = code_of(errno);
    return {};
  }
}

void set_no_delay(const Descriptor& socket) noexcept { set(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

Descriptor adopt_listener(int fd) {
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0) {
    fail<IoError>("socket", "descriptor {} is no socket to listen at: {}", fd, std::generic_category().message(errno));
  }
  if (listening == 0) fail<IoError>("socket", "descriptor {} is a socket that does not listen", fd);
  (void)::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  (void)::fcntl(fd, F_SETFD, ::fcntl(fd, F_GETFD) | FD_CLOEXEC);
  return Descriptor(fd);
}

int poll_timeout(Deadline deadline) noexcept {
  const auto left = deadline - std::chrono::steady_clock::now();
  if (left <= left.zero()) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, std::numeric_limits<int>::max()));
}

bool wait_until(const Descriptor& socket, short events, Deadline deadline) {
  for (;;) {
    pollfd poll = {socket.get(), events, 0};
    const int ready = ::poll(&poll, 1, poll_timeout(deadline));
    if (ready > 0) return true;
    if (ready == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    if (ready < 0 && errno != EINTR) return true;  // the call that follows says what is wrong
  }
}

// ---- bytes ----

Transfer send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept {
  constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;
  return attempt(
      pieces, [&](void* data, std::size_t bytes) { return ::send(socket.get(), data, bytes, kFlags); },
      [&](msghdr* message) { return ::sendmsg(socket.get(), message, kFlags); });
}

Transfer receive_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept {
  Transfer result = attempt(
      pieces, [&](void* data, std::size_t bytes) { return ::recv(socket.get(), data, bytes, MSG_DONTWAIT); },
      [&](msghdr* message) { return ::recvmsg(socket.get(), message, MSG_DONTWAIT); });
  // Nobody asks for nothing: no bytes mean the end of the stream.
  if (result.flow == Transfer::Flow::moved && result.bytes == 0) result.flow = Transfer::Flow::broken;
  return result;
}

Transfer send_some(const Descriptor& socket, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return {};
  const iovec piece = piece_of(bytes);
  return send_some(socket, std::span<const iovec>(&piece, 1));
}

Transfer receive_some(const Descriptor& socket, std::span<std::byte> bytes) noexcept {
  if (bytes.empty()) return {};
  const iovec piece = piece_of(bytes);
  return receive_some(socket, std::span<const iovec>(&piece, 1));
}

void end_sending(const Descriptor& socket) noexcept { (void)::shutdown(socket.get(), SHUT_WR); }

void send_all(const Descriptor& socket, std::span<const std::byte> data, Deadline deadline, std::string_view peer) {
  while (!data.empty()) {
    const Transfer moved = send_some(socket, data);
    if (moved.gone()) fail_gone(peer, moved.error);
    data = data.subspan(moved.bytes);
    if (moved.bytes == 0 && !wait_until(socket, POLLOUT, deadline)) {
      fail<Timeout>("socket", "{} did not take {} more bytes in time", peer, data.size());
    }
  }
}

void receive_all(const Descriptor& socket, std::span<std::byte> data, Deadline deadline, std::string_view peer) {
  while (!data.empty()) {
    const Transfer moved = receive_some(socket, data);
    if (moved.gone()) fail_gone(peer, moved.error);
    data = data.subspan(moved.bytes);
    if (moved.bytes == 0 && !wait_until(socket, POLLIN, deadline)) {
      fail<Timeout>("socket", "{} did not send {} more bytes in time", peer, data.size());
    }
  }
}

std::string text_of_errno(int error) { return std::generic_category().message(error); }

std::string reason_of(const Transfer& broken) {
  return broken.error == 0 ? "it closed the connection" : text_of_errno(broken.error);
}

void cut_transfers(bool cut) noexcept { cutting.store(cut, std::memory_order_relaxed); }

RandomId random_id() {
  RandomId id{};
  if (::getrandom(id.data(), id.size(), 0) != static_cast<ssize_t>(id.size())) {
    fail<IoError>("socket", "cannot get random numbers: {}", text_of_errno(errno));
  }
  return id;
}

std::string to_string(const RandomId& id) {
  std::string text;
  for (const std::uint8_t byte : id) text += fmt::format("{:02x}", byte);
  return text;
}

RandomId random_id_from(std::string_view text) {
  RandomId id{};
  bool good = text.size() == 2 * id.size();
  for (std::size_t i = 0; good && i < id.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    good = std::from_chars(digits, digits + 2, id[i], 16).ptr == digits + 2;
  }
  if (!good) fail<Mismatch>("socket", "'{}' is not the id of a world", text);
  return id;
}

}  // namespace lamina::comm
