#include "lamina/dist/comm/transport/socket.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <system_error>

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

template <class Call>
Transfer attempt(const Descriptor& socket, std::span<const iovec> pieces, Call call) noexcept {
  iovec one;
  pieces = cut(pieces, one);
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  for (;;) {
    const ssize_t n = call(socket.get(), &message);
    if (n >= 0) return {Transfer::Flow::moved, static_cast<std::size_t>(n), 0};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) return {Transfer::Flow::blocked, 0, 0};
    if (errno != EINTR) return {Transfer::Flow::broken, 0, errno};
  }
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::string text_of_errno(int error) { return std::generic_category().message(error); }

std::string reason_of(const Transfer& broken) {
  return broken.error == 0 ? "it closed the connection" : text_of_errno(broken.error);
}

SocketAddress::SocketAddress(const std::string& text, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int result = ::getaddrinfo(text.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) fail<ValueError>("tcp", "'{}' is not an address: {}", text, ::gai_strerror(result));
  *this = from(found->ai_addr, found->ai_addrlen);
  ::freeaddrinfo(found);
}

SocketAddress SocketAddress::from(const sockaddr* address, socklen_t length) {
  SocketAddress result;
  result.length_ = std::min<socklen_t>(length, sizeof result.storage_);
  std::memcpy(&result.storage_, address, result.length_);
  return result;
}

SocketAddress SocketAddress::abstract_name(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);  // a name that begins with NUL is no file
  return from(reinterpret_cast<const sockaddr*>(&address),
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
}

SocketAddress SocketAddress::of(const Descriptor& socket) {
  SocketAddress result;
  result.length_ = sizeof result.storage_;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&result.storage_), &result.length_) != 0) {
    result.length_ = 0;
  }
  return result;
}

SocketAddress SocketAddress::of_peer(const Descriptor& socket) {
  SocketAddress result;
  result.length_ = sizeof result.storage_;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&result.storage_), &result.length_) != 0) {
    result.length_ = 0;
  }
  return result;
}

int SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

std::string SocketAddress::host() const {
  char text[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr, text, sizeof text);
  } else if (family() == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr, text, sizeof text);
  } else if (family() == AF_UNIX && length_ > offsetof(sockaddr_un, sun_path) + 1) {
    const char* path = reinterpret_cast<const sockaddr_un*>(&storage_)->sun_path;
    return std::string(path + 1, length_ - offsetof(sockaddr_un, sun_path) - 1);
  }
  return text;
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr) >> 24) == 127;
  }
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

bool SocketAddress::is_link_local() const noexcept {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

std::uint32_t SocketAddress::scope() const noexcept {
  return family() == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_scope_id : 0;
}

void SocketAddress::set_scope(std::uint32_t scope) noexcept {
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_scope_id = scope;
}

std::string to_string(const SocketAddress& address) {
  if (address.family() == AF_UNIX) return "@" + address.host();
  if (address.family() == AF_INET6) return fmt::format("[{}]:{}", address.host(), address.port());
  return fmt::format("{}:{}", address.host(), address.port());
}

Descriptor stream_socket(int family) {
  Descriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) fail<IoError>("socket", "cannot make a socket: {}", text_of_errno(errno));
  return socket;
}

Descriptor listen_on(const SocketAddress& address) {
  Descriptor socket = stream_socket(address.family());
  const int one = 1;
  if (address.family() != AF_UNIX) ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(socket.get(), address.get(), address.length()) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    fail<IoError>("socket", "cannot listen on {}: {}", to_string(address), text_of_errno(errno));
  }
  return socket;
}

void set_no_delay(const Descriptor& socket) noexcept {
  const int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

Transfer send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept {
  return attempt(socket, pieces,
                 [](int fd, msghdr* message) { return ::sendmsg(fd, message, MSG_NOSIGNAL | MSG_DONTWAIT); });
}

Transfer receive_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept {
  Transfer result =
      attempt(socket, pieces, [](int fd, msghdr* message) { return ::recvmsg(fd, message, MSG_DONTWAIT); });
  // Nobody asks for nothing: no bytes mean the end of the stream.
  if (result.flow == Transfer::Flow::moved && result.bytes == 0) result.flow = Transfer::Flow::broken;
  return result;
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

Host this_host() {
  Host host;
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  host.name = name;
  struct stat network {};
  ::stat("/proc/self/ns/net", &network);
  host.identity = fmt::format("{}/{}", first_line("/proc/sys/kernel/random/boot_id"), network.st_ino);
  return host;
}

}  // namespace lamina::comm
