// Ranks that are processes of one host, over shared memory that has no name: it is created by rank 0 and handed to the
// others over sockets, so that nothing is left behind whoever dies when. The sockets stay, a pair a pair of ranks: they
// tell of deaths, carry questions and aborts, and are the doorbells of those that sleep.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

struct SharedMemoryOptions {
  /// Of each ordered pair, the same on all ranks: a power of two of at least 1 KiB. Memory is used as it is touched.
  std::size_t ring_bytes = std::size_t{1} << 20;
  std::chrono::milliseconds timeout{std::chrono::minutes(1)};  ///< for connecting, once all have met
};

/// Collective. Throws what exchange() throws; Mismatch naming the hosts when the ranks are not on one, or have other
/// options; IoError for ranks that did not connect; PeerLost for one that went away meanwhile.
std::unique_ptr<Transport> shared_memory_transport(Rendezvous& rendezvous, int rank, int size,
                                                   const SharedMemoryOptions& options = {});

/// The same for ranks that are threads of one process, over one mapping; for tests and comparisons.
std::vector<std::unique_ptr<Transport>> shared_memory_transports(int size, const SharedMemoryOptions& options = {});

}  // namespace lamina::comm
