#include "lamina/dist/comm/transport/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina::comm {

namespace {

std::error_code code_of(int error) { return {error, std::generic_category()}; }

template <class T>
T as(const sockaddr_storage& storage) noexcept {
  T out;
  std::memcpy(&out, &storage, sizeof out);
  return out;
}

void set(const Descriptor& socket, int level, int option, int value) noexcept {
  (void)::setsockopt(socket.get(), level, option, &value, sizeof value);
}

Descriptor stream_socket(int family, std::error_code& error) noexcept {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  error = socket ? std::error_code() : code_of(errno);
  return socket;
}

template <class Call>
Moved move(Call call) noexcept {
  for (;;) {
    const ssize_t n = call();
    if (n >= 0) return {.bytes = static_cast<std::size_t>(n)};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {};
    return {.gone = true, .error = errno};
  }
}

[[noreturn]] void fail_gone(std::string_view peer, int error) {
  fail<PeerLost>(
      "socket", "{} {}", peer,
      error == 0 ? std::string("closed its connection") : "is gone: " + std::generic_category().message(error));
}

struct Found {
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> list;
  int error;
};
Found look_up(const std::string& host, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  return {{error == 0 ? found : nullptr, ::freeaddrinfo}, error};
}

}  // namespace

// ---- addresses ----

SocketAddress::SocketAddress(const sockaddr* address, socklen_t size) noexcept
    : size_(std::min<socklen_t>(size, sizeof storage_)) {
  std::memcpy(&storage_, address, size_);
  if (storage_.ss_family != AF_INET6) return;
  const auto v6 = as<sockaddr_in6>(storage_);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return;
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, &v6.sin6_addr.s6_addr[12], sizeof v4.sin_addr);
  storage_ = {};
  std::memcpy(&storage_, &v4, sizeof v4);
  size_ = sizeof v4;
}

SocketAddress SocketAddress::local_of(const Descriptor& socket) noexcept {
  sockaddr_storage at = {};
  socklen_t size = sizeof at;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&at), size};
}

SocketAddress SocketAddress::peer_of(const Descriptor& socket) noexcept {
  sockaddr_storage at = {};
  socklen_t size = sizeof at;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&at), &size) != 0) return {};
  return {reinterpret_cast<const sockaddr*>(&at), size};
}

std::string SocketAddress::host() const {
  if (family() != AF_INET && family() != AF_INET6) return {};
  char text[NI_MAXHOST];
  if (::getnameinfo(get(), size_, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

int SocketAddress::port() const noexcept {
  switch (family()) {
    case AF_INET: return ntohs(as<sockaddr_in>(storage_).sin_port);
    case AF_INET6: return ntohs(as<sockaddr_in6>(storage_).sin6_port);
    default: return 0;
  }
}

SocketAddress SocketAddress::with_port(int port) const noexcept {
  SocketAddress out = *this;
  const in_port_t value = htons(static_cast<std::uint16_t>(port));
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  if (family() == AF_INET || family() == AF_INET6) {
    std::memcpy(reinterpret_cast<char*>(&out.storage_) + offsetof(sockaddr_in, sin_port), &value, sizeof value);
  }
  return out;
}

std::string SocketAddress::to_string() const {
  if (family() == AF_INET6) return fmt::format("[{}]:{}", host(), port());
  return family() == AF_INET ? fmt::format("{}:{}", host(), port()) : std::string("an unknown address");
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET) return (ntohl(as<sockaddr_in>(storage_).sin_addr.s_addr) >> 24) == 127;
  const auto v6 = as<sockaddr_in6>(storage_);
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool SocketAddress::is_any() const noexcept {
  if (family() == AF_INET) return as<sockaddr_in>(storage_).sin_addr.s_addr == htonl(INADDR_ANY);
  const auto v6 = as<sockaddr_in6>(storage_);
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept {
  return a.size_ == b.size_ && std::memcmp(&a.storage_, &b.storage_, a.size_) == 0;
}

HostPort parse_host_port(std::string_view text, std::string_view what) {
  const auto wrong = [&](std::string_view why) {
    fail<ValueError>(what, "{} {}; HOST:PORT is needed, an IPv6 address in brackets: [::1]:29500", quote(text), why);
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) wrong("has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (!host.empty() && host.front() == '[') {
    if (host.back() != ']') wrong("has no port after its bracket");
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    wrong("has more than one colon");
  }
  if (host.empty()) wrong("has no host");
  if (host.find('\0') != std::string_view::npos) wrong("holds a NUL byte");
  int port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535 || digits[0] == '-') {
    wrong("has a port that is no number from 0 to 65535");
  }
  return {std::string(host), port};
}

std::optional<SocketAddress> numeric_address(const std::string& host, int port) {
  const auto [found, error] = look_up(host, AI_NUMERICHOST);
  if (error != 0) return std::nullopt;
  return SocketAddress(found->ai_addr, found->ai_addrlen).with_port(port);
}

std::vector<SocketAddress> resolve(const std::string& host, int port) {
  const auto [found, error] = look_up(host, 0);
  if (error != 0) {
    const std::string reason = error == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(error);
    fail<IoError>("socket", "cannot resolve {}: {}", quote(host), reason);
  }
  std::vector<SocketAddress> out;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    const SocketAddress address = SocketAddress(at->ai_addr, at->ai_addrlen).with_port(port);
    if (std::find(out.begin(), out.end(), address) == out.end()) out.push_back(address);
  }
  return out;
}

// ---- connections ----

Descriptor listen_at(const SocketAddress& at, std::error_code& error) noexcept {
  Descriptor socket = stream_socket(at.family(), error);
  if (error) return {};
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);  // what a killed run left in TIME_WAIT does not hold the port
  if (at.family() == AF_INET6) set(socket, IPPROTO_IPV6, IPV6_V6ONLY, at.is_any() ? 0 : 1);
  if (::bind(socket.get(), at.get(), at.size()) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    error = code_of(errno);
    return {};
  }
  return socket;
}

Descriptor listen_at(const SocketAddress& at) {
  std::error_code error;
  Descriptor socket = listen_at(at, error);
  if (error) fail<IoError>("socket", "cannot listen at {}: {}", at.to_string(), error.message());
  return socket;
}

Descriptor connect_to(const SocketAddress& to, Deadline deadline, std::error_code& error) noexcept {
  Descriptor socket = stream_socket(to.family(), error);
  if (error) return {};
  // Interrupted or not, the connection goes on being made.
  if (::connect(socket.get(), to.get(), to.size()) != 0 && errno != EINPROGRESS && errno != EINTR) {
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
  if (result == 0 && SocketAddress::local_of(socket) == SocketAddress::peer_of(socket)) result = ECONNREFUSED;
  if (result != 0) {
    error = code_of(result);
    return {};
  }
  return socket;
}

Descriptor connect_to(const SocketAddress& to, Deadline deadline) {
  std::error_code error;
  Descriptor socket = connect_to(to, deadline, error);
  if (error) fail<IoError>("socket", "cannot connect to {}: {}", to.to_string(), error.message());
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

void send_at_once(const Descriptor& socket) noexcept { set(socket, IPPROTO_TCP, TCP_NODELAY, 1); }

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

Moved send_some(const Descriptor& socket, std::span<const std::byte> data) noexcept {
  return move([&] { return ::send(socket.get(), data.data(), data.size(), MSG_NOSIGNAL); });
}

Moved recv_some(const Descriptor& socket, std::span<std::byte> data) noexcept {
  if (data.empty()) return {};
  bool ended = false;
  Moved moved = move([&] {
    const ssize_t n = ::recv(socket.get(), data.data(), data.size(), 0);
    ended = n == 0;
    return n;
  });
  moved.gone |= ended;
  return moved;
}

void end_sending(const Descriptor& socket) noexcept { (void)::shutdown(socket.get(), SHUT_WR); }

void send_all(const Descriptor& socket, std::span<const std::byte> data, Deadline deadline, std::string_view peer) {
  while (!data.empty()) {
    const Moved moved = send_some(socket, data);
    if (moved.gone) fail_gone(peer, moved.error);
    data = data.subspan(moved.bytes);
    if (moved.bytes == 0 && !wait_until(socket, POLLOUT, deadline)) {
      fail<Timeout>("socket", "{} did not take {} more bytes in time", peer, data.size());
    }
  }
}

void recv_all(const Descriptor& socket, std::span<std::byte> data, Deadline deadline, std::string_view peer) {
  while (!data.empty()) {
    const Moved moved = recv_some(socket, data);
    if (moved.gone) fail_gone(peer, moved.error);
    data = data.subspan(moved.bytes);
    if (moved.bytes == 0 && !wait_until(socket, POLLIN, deadline)) {
      fail<Timeout>("socket", "{} did not send {} more bytes in time", peer, data.size());
    }
  }
}

}  // namespace lamina::comm
