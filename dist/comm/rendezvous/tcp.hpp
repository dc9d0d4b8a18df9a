// The rendezvous over TCP: rank 0 is the host, the others are its guests, one connection each that stays for all
// exchanges. Use rendezvous().
//
//   guest                    host
//   hello              ->          version, rank, size, job, time left: checked before anything else
//                      <-  welcome (or verdict: why not)
//   blob, time left    ->
//                      <-  blobs of all ranks (or verdict: what went wrong, the same to all)
//
// A guest tries again for as long as nobody listens or who listens goes away before the welcome: an earlier run's rank
// 0 may still be dying. From the welcome on, an end of the connection is a death.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lamina/dist/comm/rendezvous/channel.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "lamina/dist/comm/transport/socket.hpp"

namespace lamina::comm {

/// `listener` may be empty: the host then listens itself when the first exchange begins.
std::unique_ptr<Rendezvous> tcp_host(const Meeting& meeting, const HostPort& where, Descriptor listener);
std::unique_ptr<Rendezvous> tcp_guest(const Meeting& meeting, const HostPort& where);

/// What came of a guest's hello.
struct Introduction {
  std::unique_ptr<Channel> channel;  ///< when it is welcome
  std::optional<Hello> host;         ///< then too
  std::optional<Verdict> refused;
  std::string failure;     ///< else: "Connection refused"
  bool no_host = false;    ///< what listens there is something else
  bool no_answer = false;  ///< it took the connection and says nothing
};
/// Connects to a host's address and waits for its answer until the deadline.
Introduction introduce(const Hello& hello, const SocketAddress& to, Deadline deadline);

}  // namespace lamina::comm
