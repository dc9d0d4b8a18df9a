// Ranks that are threads of one process. Nothing is copied on the way: the receiver reads the sender's memory.
#pragma once

#include <memory>
#include <vector>

#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

/// Transport r is rank r's. One destroyed without every rank being done is a lost peer to the others.
std::vector<std::unique_ptr<Transport>> thread_transports(int size);

}  // namespace lamina::comm
