// Ranks anywhere, over TCP: IPv4 or IPv6, any port, one control connection and several for data a pair of ranks.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

struct TcpOptions {
  /// An address or interface to listen on and advertise. Empty: the address by which the rendezvous was reached, or
  /// all if it has none.
  std::string bind;
  int port = 0;         ///< 0: any that is free
  int connections = 1;  ///< for data, a pair, the same on all ranks; a large message is striped over them
  std::chrono::milliseconds timeout{std::chrono::minutes(1)};  ///< for connecting, once all have met
};

/// Collective. Throws what exchange() throws; IoError naming the address and what was tried when a peer cannot be
/// reached; ValueError for an interface that does not exist, naming those that do, and for a loopback address when a
/// peer is on another host.
std::unique_ptr<Transport> tcp_transport(Rendezvous& rendezvous, int rank, int size, const TcpOptions& options = {});

}  // namespace lamina::comm
