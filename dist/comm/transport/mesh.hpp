// Mesh: every pair of ranks connected by stream sockets. Each rank listens and has told the others where; the higher
// rank of a pair connects. The handshake checks protocol version, world, ranks and channel, so that strays, port
// scanners and other worlds are turned away and disturb nobody.
#pragma once

#include <vector>

#include "lamina/dist/comm/transport/socket.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

struct MeshPlan {
  std::string where;  ///< "shm", "tcp": for messages
  int rank = 0, size = 1;
  int channels = 1;                                 ///< sockets a pair
  RandomId world{};                                 ///< the same on all ranks, and on no others
  std::vector<std::vector<SocketAddress>> reached;  ///< [rank]: where it can be reached, to be tried in this order
  Clock::time_point deadline;
};

/// Sockets [peer][channel]; none for this rank. Throws IoError naming the addresses tried and what came of each, for a
/// rank that cannot be reached or does not come before the deadline; PeerLost for one that went away meanwhile.
std::vector<std::vector<Descriptor>> connect_mesh(const Descriptor& listener, const MeshPlan& plan);

}  // namespace lamina::comm
