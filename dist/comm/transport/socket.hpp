// Sockets as the transports need them: owned, closed on exec, never blocking, never raising SIGPIPE, EINTR-safe.
// Thread-safety: functions are thread-safe; one thread at a time sends, and one receives, on a socket.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lamina/core/io/descriptor.hpp"

namespace lamina::comm {

/// Where a socket listens: IPv4, IPv6 (with a scope if link-local) or an abstract name of this host.
class SocketAddress {
 public:
  SocketAddress() = default;
  /// Throws ValueError if `text` is not an address in digits ("10.0.0.1", "fe80::1%eth0").
  SocketAddress(const std::string& text, int port);
  /// An AF_UNIX address that has no file: it lives as long as its socket.
  static SocketAddress abstract_name(std::string_view name);
  /// What a socket is bound to, or connected to.
  static SocketAddress of(const Descriptor& socket);
  static SocketAddress of_peer(const Descriptor& socket);
  static SocketAddress from(const sockaddr* address, socklen_t length);

  int family() const noexcept { return storage_.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const noexcept { return length_; }
  int port() const noexcept;
  /// Without the port, and without the scope: that is a number of the host it was read on.
  std::string host() const;
  bool is_loopback() const noexcept;
  bool is_link_local() const noexcept;
  std::uint32_t scope() const noexcept;
  void set_scope(std::uint32_t scope) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};
/// "10.0.0.1:4711", "[::1]:4711", "@name".
std::string to_string(const SocketAddress& address);

/// Throws IoError.
Descriptor stream_socket(int family);
Descriptor listen_on(const SocketAddress& address);
/// Fewer latencies for small messages; no effect on AF_UNIX.
void set_no_delay(const Descriptor& socket) noexcept;

/// What came of one attempt to move bytes.
struct Transfer {
  enum class Flow : std::uint8_t { moved, blocked, broken } flow = Flow::moved;
  std::size_t bytes = 0;
  int error = 0;  ///< broken: the errno; 0 when the other side closed
};
Transfer send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept;
Transfer receive_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept;

inline iovec piece_of(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// "it closed the connection", or the text of the errno.
std::string reason_of(const Transfer& broken);
std::string text_of_errno(int error);

/// For tests: every send and receive of the process moves 1 to 7 bytes at most.
void cut_transfers(bool cut) noexcept;

using RandomId = std::array<std::uint8_t, 16>;
RandomId random_id();
std::string to_string(const RandomId& id);
/// Throws Mismatch for what is not an id.
RandomId random_id_from(std::string_view text);

/// Who can share memory and loopback addresses: processes of one kernel and network namespace.
struct Host {
  std::string name;      ///< for messages
  std::string identity;  ///< equal where the hosts are
};
Host this_host();

}  // namespace lamina::comm
