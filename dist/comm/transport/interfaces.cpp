#include "lamina/dist/comm/transport/interfaces.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

struct Interface {
  std::string name;
  SocketAddress address;
};

// The addresses of the interfaces that are up: IPv4 first, then IPv6, then link-local, then loopback.
std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail<IoError>("tcp", "cannot list the interfaces: {}", text_of_errno(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  std::vector<Interface> all;
  for (const ifaddrs* it = list; it != nullptr; it = it->ifa_next) {
    if (it->ifa_addr == nullptr || (it->ifa_flags & IFF_UP) == 0) continue;
    const int family = it->ifa_addr->sa_family;
    if (family == AF_INET) all.push_back({it->ifa_name, SocketAddress::from(it->ifa_addr, sizeof(sockaddr_in))});
    if (family == AF_INET6) all.push_back({it->ifa_name, SocketAddress::from(it->ifa_addr, sizeof(sockaddr_in6))});
  }
  const auto rank = [](const Interface& i) {
    if (i.address.is_loopback()) return 3;
    if (i.address.is_link_local()) return 2;
    return i.address.family() == AF_INET ? 0 : 1;
  };
  std::stable_sort(all.begin(), all.end(), [&](const Interface& a, const Interface& b) { return rank(a) < rank(b); });
  return all;
}

std::optional<SocketAddress> as_address(const std::string& text) {
  try {
    return SocketAddress(text, 0);
  } catch (const ValueError&) {
    return std::nullopt;
  }
}

// The address in digits that `bind` is or means.
std::string resolve(const std::string& bind) {
  if (as_address(bind)) return bind;
  std::string known;
  for (const Interface& each : interfaces()) {
    if (each.name == bind) {
      return each.address.is_link_local() ? each.address.host() + "%" + each.name : each.address.host();
    }
    if (known.find(each.name) == std::string::npos) known += (known.empty() ? "" : ", ") + each.name;
  }
  fail<ValueError>("tcp", "'{}' is neither an address nor an interface of this host that is up: {}", bind, known);
}

Listener listen_everywhere(const std::string& any, int port) {
  Listener listener;
  for (const std::string& address : any.empty() ? std::vector<std::string>{"::", "0.0.0.0"} : std::vector{any}) {
    try {
      listener.socket = listen_on(SocketAddress(address, port));  // "::" takes IPv4 too
      break;
    } catch (const IoError&) {
      if (address != "::" || !any.empty()) throw;  // a host without IPv6
    }
  }
  listener.address = SocketAddress::of(listener.socket);
  for (const Interface& each : interfaces()) {
    if (any == "0.0.0.0" && each.address.family() != AF_INET) continue;
    listener.hosts.push_back(each.address.host());
  }
  return listener;
}

}  // namespace

Listener listen_for_peers(const std::string& bind, const std::string& reached_by, int port) {
  const std::string address = bind.empty() ? reached_by : resolve(bind);
  if (address.empty() || address == "::" || address == "0.0.0.0") return listen_everywhere(address, port);
  Listener listener;
  listener.socket = listen_on(SocketAddress(address, port));
  listener.address = SocketAddress::of(listener.socket);
  listener.hosts = {listener.address.host()};
  return listener;
}

}  // namespace lamina::comm
