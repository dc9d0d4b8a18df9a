// World: the group of all ranks of a job, met at a place.
#pragma once

#include <optional>
#include <string>

#include "lamina/dist/comm/group.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "lamina/dist/comm/transport/shared_memory.hpp"
#include "lamina/dist/comm/transport/tcp.hpp"

namespace lamina::comm {

struct ConnectOptions {
  GroupOptions group;
  /// "shm", "tcp", or "auto": shared memory when all ranks are on one host, else TCP.
  std::string transport = "auto";
  SharedMemoryOptions shared_memory;
  TcpOptions tcp;
  std::optional<Transport::Link> link_model;
};

/// Collective. Throws what rendezvous and transports throw.
Group connect(const Meeting& meeting, const ConnectOptions& options = {});
/// As a launcher arranged it; alone without one.
Group connect(const ConnectOptions& options = {});

}  // namespace lamina::comm
