// What transports put into the rendezvous: their kind and a few fields, as lines of text.
#pragma once

#include <string>
#include <vector>

#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

namespace lamina::comm {

struct Blob {
  std::string kind;                 ///< "shm", "tcp"
  std::vector<std::string> fields;  ///< without line ends
};

/// Everybody's, by rank. Throws what exchange() throws, and Mismatch when not all are of one kind with as many fields.
std::vector<Blob> exchange_blobs(Rendezvous& rendezvous, const Blob& mine, int rank, int size);

}  // namespace lamina::comm
