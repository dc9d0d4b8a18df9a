// Where sockets listen: addresses that print, parse and resolve. Values; the functions are thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/io/descriptor.hpp"

namespace lamina::comm {

/// IPv4, IPv6 (with a scope if link-local) or an abstract name of this host. IPv4 mapped into IPv6 becomes IPv4.
class SocketAddress {
 public:
  SocketAddress() noexcept = default;
  /// Throws ValueError if `text` is not an address in digits ("10.0.0.1", "fe80::1%eth0").
  SocketAddress(const std::string& text, int port);
  /// An AF_UNIX address that has no file: it lives as long as its socket.
  static SocketAddress abstract_name(std::string_view name);
  /// What a socket is bound to, or connected to; empty when the system does not know.
  static SocketAddress of(const Descriptor& socket) noexcept;
  static SocketAddress of_peer(const Descriptor& socket) noexcept;
  static SocketAddress from(const sockaddr* address, socklen_t length) noexcept;

  int family() const noexcept { return storage_.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const noexcept { return length_; }
  int port() const noexcept;
  SocketAddress with_port(int port) const noexcept;
  /// Without the port, and without the scope: that is a number of the host it was read on.
  std::string host() const;
  /// With the scope by its name here: "fe80::1%eth0".
  std::string host_and_scope() const;
  bool is_loopback() const noexcept;
  bool is_link_local() const noexcept;
  /// 0.0.0.0 or ::, to listen on all of the host's addresses.
  bool is_any() const noexcept;
  std::uint32_t scope() const noexcept;
  void set_scope(std::uint32_t scope) noexcept;
  friend bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};
/// "10.0.0.1:4711", "[::1]:4711", "@name".
std::string to_string(const SocketAddress& address);

struct HostPort {
  std::string host;
  int port = 0;  ///< 0 to 65535
};
/// "HOST:PORT", with IPv6 addresses in brackets. Throws ValueError naming `what` the text is for.
HostPort parse_host_port(std::string_view text, std::string_view what);

/// The address that `host` is when it is no name but numbers; no resolver is asked.
std::optional<SocketAddress> numeric_address(const std::string& host, int port);

/// All addresses of a host name or numeric address, in the system's order. Blocks for as long as the resolver does.
/// Throws IoError "cannot resolve 'x': <the resolver's reason>".
std::vector<SocketAddress> resolve(const std::string& host, int port);

/// Who can share memory and loopback addresses: processes of one kernel and network namespace.
struct Host {
  std::string name;      ///< for messages
  std::string identity;  ///< equal where the hosts are
};
Host this_host();

}  // namespace lamina::comm
