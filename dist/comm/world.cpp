#include "lamina/dist/comm/world.hpp"

#include <algorithm>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/address.hpp"
#include "lamina/dist/comm/transport/link_model.hpp"
#include "lamina/dist/comm/transport/threads.hpp"

namespace lamina::comm {

Group connect(const Meeting& meeting, const ConnectOptions& options) {
  const std::string& wanted = options.transport;
  if (wanted != "auto" && wanted != "shm" && wanted != "tcp") {
    fail<ValueError>("connect", "no transport '{}'; there are auto, shm, tcp", wanted);
  }
  GroupOptions group = options.group;
  std::unique_ptr<Transport> transport;
  if (meeting.size == 1) {
    transport = std::move(thread_transports(1)[0]);
  } else {
    const std::unique_ptr<Rendezvous> place = rendezvous(meeting);
    // Who is where. TCP needs this meeting too: only after it is it known by which address others reach this host.
    const std::string here = this_host().identity;
    const std::vector<std::string> hosts = place->exchange(here);
    const auto neighbours = static_cast<int>(std::count(hosts.begin(), hosts.end(), here));
    if (group.ranks_on_host == 0) group.ranks_on_host = neighbours;
    // By what rank 0 sees, so that all decide the same.
    const bool one_host = std::count(hosts.begin(), hosts.end(), hosts[0]) == meeting.size;
    transport = wanted == "shm" || (wanted == "auto" && one_host)
                    ? shared_memory_transport(*place, meeting.rank, meeting.size, options.shared_memory)
                    : tcp_transport(*place, meeting.rank, meeting.size, options.tcp);
  }
  if (options.link_model) transport = with_link_model(std::move(transport), *options.link_model);
  return Group(std::move(transport), group);
}

Group connect(const ConnectOptions& options) { return connect(meeting_from_environment(), options); }

}  // namespace lamina::comm
