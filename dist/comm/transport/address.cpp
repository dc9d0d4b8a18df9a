#include "lamina/dist/comm/transport/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <system_error>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina::comm {

namespace {

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

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

SocketAddress::SocketAddress(const std::string& text, int port) {
  const auto [found, error] = look_up(text, AI_NUMERICHOST);
  if (error != 0) fail<ValueError>("tcp", "'{}' is not an address: {}", text, ::gai_strerror(error));
  *this = from(found->ai_addr, found->ai_addrlen).with_port(port);
}

SocketAddress SocketAddress::from(const sockaddr* address, socklen_t length) noexcept {
  SocketAddress result;
  result.length_ = std::min<socklen_t>(length, sizeof result.storage_);
  std::memcpy(&result.storage_, address, result.length_);
  if (result.family() != AF_INET6) return result;
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&result.storage_);
  if (!IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return result;
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = v6->sin6_port;
  std::memcpy(&v4.sin_addr, &v6->sin6_addr.s6_addr[12], sizeof v4.sin_addr);
  return from(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
}

SocketAddress SocketAddress::abstract_name(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);  // a name that begins with NUL is no file
  return from(reinterpret_cast<const sockaddr*>(&address),
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
}

SocketAddress SocketAddress::of(const Descriptor& socket) noexcept {
  sockaddr_storage at = {};
  socklen_t length = sizeof at;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) return {};
  return from(reinterpret_cast<const sockaddr*>(&at), length);
}

SocketAddress SocketAddress::of_peer(const Descriptor& socket) noexcept {
  sockaddr_storage at = {};
  socklen_t length = sizeof at;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) return {};
  return from(reinterpret_cast<const sockaddr*>(&at), length);
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

std::string SocketAddress::host_and_scope() const {
  if (family() != AF_INET && family() != AF_INET6) return host();
  char text[NI_MAXHOST];
  if (::getnameinfo(get(), length_, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return text;
}

bool SocketAddress::is_any() const noexcept {
  if (family() == AF_INET) return reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr == htonl(INADDR_ANY);
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr);
}

bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept {
  return a.length_ == b.length_ && std::memcmp(&a.storage_, &b.storage_, a.length_) == 0;
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
  if (address.family() == AF_INET6) return fmt::format("[{}]:{}", address.host_and_scope(), address.port());
  if (address.family() != AF_INET) return "an unknown address";
  return fmt::format("{}:{}", address.host(), address.port());
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
  return SocketAddress::from(found->ai_addr, found->ai_addrlen).with_port(port);
}

std::vector<SocketAddress> resolve(const std::string& host, int port) {
  const auto [found, error] = look_up(host, 0);
  if (error != 0) {
    const std::string reason = error == EAI_SYSTEM ? std::generic_category().message(errno) : ::gai_strerror(error);
    fail<IoError>("socket", "cannot resolve {}: {}", quote(host), reason);
  }
  std::vector<SocketAddress> out;
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    const SocketAddress address = SocketAddress::from(at->ai_addr, at->ai_addrlen).with_port(port);
    if (std::find(out.begin(), out.end(), address) == out.end()) out.push_back(address);
  }
  return out;
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
