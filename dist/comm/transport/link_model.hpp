// A link model on any transport: messages take as long as they would over a link of a given latency and bandwidth, so
// that slow networks can be studied on one machine. Each rank has one outgoing link that messages leave one after
// another: a message leaves when the link is free, takes bytes / bandwidth, and has arrived a latency later. All ranks
// must be on one host (they share a clock).
#pragma once

#include <memory>

#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

/// Zero bandwidth means unlimited. The numbers hold for every pair.
std::unique_ptr<Transport> with_link_model(std::unique_ptr<Transport> inner, const Transport::Link& link);

}  // namespace lamina::comm
