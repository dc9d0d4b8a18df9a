// Stream sockets as this room wants them: owned, non-blocking, closed on exec, never raising SIGPIPE, EINTR-safe, with
// deadlines and addresses that print. The functions are thread-safe; a descriptor belongs to one thread at a time.
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lamina/core/io/descriptor.hpp"

namespace lamina::comm {

using Deadline = std::chrono::steady_clock::time_point;

/// An IPv4 or IPv6 address with a port. A value. IPv4 addresses mapped into IPv6 become IPv4 ones.
class SocketAddress {
 public:
  SocketAddress() noexcept = default;
  SocketAddress(const sockaddr* address, socklen_t size) noexcept;
  /// The two ends of a socket; an empty address when the system does not know it.
  static SocketAddress local_of(const Descriptor& socket) noexcept;
  static SocketAddress peer_of(const Descriptor& socket) noexcept;

  int family() const noexcept { return storage_.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }

  /// "10.0.0.1", "::1", "fe80::1%eth0". Empty for an empty address.
  std::string host() const;
  int port() const noexcept;
  SocketAddress with_port(int port) const noexcept;
  /// "10.0.0.1:29500", "[::1]:29500".
  std::string to_string() const;
  bool is_loopback() const noexcept;
  /// 0.0.0.0 or ::, to listen on all of the host's addresses.
  bool is_any() const noexcept;
  friend bool operator==(const SocketAddress& a, const SocketAddress& b) noexcept;

 private:
  sockaddr_storage storage_ = {};
  socklen_t size_ = 0;
};

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

// Functions with an error code throw nothing and return an empty descriptor; the others throw IoError naming the
// address and the system's reason.

/// Listens, with SO_REUSEADDR; at :: for IPv4 too. Port 0: any that is free, SocketAddress::local_of() says which.
Descriptor listen_at(const SocketAddress& at);
Descriptor listen_at(const SocketAddress& at, std::error_code& error) noexcept;

/// Connects. `std::errc::timed_out` at the deadline. Never connects to itself, as TCP otherwise can on a host's own
/// ephemeral ports; that is `connection_refused`.
Descriptor connect_to(const SocketAddress& to, Deadline deadline);
Descriptor connect_to(const SocketAddress& to, Deadline deadline, std::error_code& error) noexcept;

/// The next connection that has arrived; empty without an error when there is none.
Descriptor accept_from(const Descriptor& listener, std::error_code& error) noexcept;

/// TCP_NODELAY. No error for other kinds of sockets.
void send_at_once(const Descriptor& socket) noexcept;

/// Takes over a listening socket that was inherited, and makes it like those made here. Throws IoError, and leaves the
/// descriptor alone, when it is no such thing.
Descriptor adopt_listener(int fd);

/// Waits for POLLIN, POLLOUT or an error condition. False when the deadline came first.
bool wait_until(const Descriptor& socket, short events, Deadline deadline);
/// Milliseconds for poll(2), rounded up; 0 for a deadline that has passed.
int poll_timeout(Deadline deadline) noexcept;

/// What one non-blocking call moved: no bytes and not gone means that it would have blocked.
struct Moved {
  std::size_t bytes = 0;
  bool gone = false;  ///< the peer closed its end, or died
  int error = 0;      ///< the errno of why it is gone; 0 for an orderly close
};
Moved send_some(const Descriptor& socket, std::span<const std::byte> data) noexcept;
Moved recv_some(const Descriptor& socket, std::span<std::byte> data) noexcept;
/// shutdown(2) of the sending side: the peer reads what was sent, then the end.
void end_sending(const Descriptor& socket) noexcept;

/// All of `data`. Throws Timeout and PeerLost, both saying `peer` ("rank 3 at 10.0.0.4:41234").
void send_all(const Descriptor& socket, std::span<const std::byte> data, Deadline deadline, std::string_view peer);
void recv_all(const Descriptor& socket, std::span<std::byte> data, Deadline deadline, std::string_view peer);

}  // namespace lamina::comm
