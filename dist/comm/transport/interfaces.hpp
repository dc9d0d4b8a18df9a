// Which address a rank listens on, and by which the others may try to reach it.
#pragma once

#include <string>
#include <vector>

#include "lamina/dist/comm/transport/socket.hpp"

namespace lamina::comm {

struct Listener {
  Descriptor socket;
  SocketAddress address;           ///< what it is bound to
  std::vector<std::string> hosts;  ///< addresses to advertise, the likeliest first; loopback ones come last
};

/// Listens on `bind`, an address or an interface; if that is empty on `reached_by`; if that is empty too everywhere.
/// Port 0: any that is free. Throws ValueError for an interface that does not exist, naming those that do; IoError for
/// an address that is not here or a port that is taken.
Listener listen_for_peers(const std::string& bind, const std::string& reached_by, int port);

}  // namespace lamina::comm
