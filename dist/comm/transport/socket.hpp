// Stream sockets as this room wants them: owned, closed on exec, never blocking, never raising SIGPIPE, EINTR-safe,
// with deadlines. Functions are thread-safe; one thread at a time sends, and one receives, on a socket.
#pragma once

#include <sys/uio.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "lamina/core/io/descriptor.hpp"
#include "lamina/dist/comm/transport/address.hpp"

namespace lamina::comm {

using Deadline = std::chrono::steady_clock::time_point;

// Functions with an error code throw nothing and return an empty descriptor; the others throw IoError naming the
// address and the system's reason.

Descriptor stream_socket(int family);
/// Listens, with SO_REUSEADDR; at :: for IPv4 too. Port 0: any that is free, SocketAddress::of() says which.
Descriptor listen_on(const SocketAddress& at);
Descriptor listen_on(const SocketAddress& at, std::error_code& error) noexcept;
/// Connects. `std::errc::timed_out` at the deadline. Never connects to itself, as TCP otherwise can on a host's own
/// ephemeral ports; that is `connection_refused`.
Descriptor connect_to(const SocketAddress& to, Deadline deadline);
Descriptor connect_to(const SocketAddress& to, Deadline deadline, std::error_code& error) noexcept;
/// The next connection that has arrived; empty without an error when there is none.
Descriptor accept_from(const Descriptor& listener, std::error_code& error) noexcept;
/// Takes over a listening socket that was inherited, and makes it like those made here. Throws IoError, and leaves the
/// descriptor alone, when it is no such thing.
Descriptor adopt_listener(int fd);
/// TCP_NODELAY: fewer latencies for small messages; no effect on AF_UNIX.
void set_no_delay(const Descriptor& socket) noexcept;

/// Waits for POLLIN, POLLOUT or an error condition. False when the deadline came first.
bool wait_until(const Descriptor& socket, short events, Deadline deadline);
/// Milliseconds for poll(2), rounded up; 0 for a deadline that has passed.
int poll_timeout(Deadline deadline) noexcept;

/// What came of one attempt to move bytes.
struct Transfer {
  enum class Flow : std::uint8_t { moved, blocked, broken } flow = Flow::moved;
  std::size_t bytes = 0;
  int error = 0;  ///< broken: the errno; 0 when the other side closed
  bool gone() const noexcept { return flow == Flow::broken; }
};
Transfer send_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept;
Transfer receive_some(const Descriptor& socket, std::span<const iovec> pieces) noexcept;
Transfer send_some(const Descriptor& socket, std::span<const std::byte> bytes) noexcept;
Transfer receive_some(const Descriptor& socket, std::span<std::byte> bytes) noexcept;
/// shutdown(2) of the sending side: the peer reads what was sent, then the end.
void end_sending(const Descriptor& socket) noexcept;

inline iovec piece_of(std::span<const std::byte> bytes) noexcept {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// All of `data`. Throws Timeout and PeerLost, both saying `peer` ("rank 3 at 10.0.0.4:41234").
void send_all(const Descriptor& socket, std::span<const std::byte> data, Deadline deadline, std::string_view peer);
void receive_all(const Descriptor& socket, std::span<std::byte> data, Deadline deadline, std::string_view peer);

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

}  // namespace lamina::comm
