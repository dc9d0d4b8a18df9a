#include "lamina/core/available_memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace lamina {

namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::max();

// The number at the start of a file; "max" and a missing file are no limit.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : kUnknown;
}

// The sum of the numbers behind these keys in a file of "key value" lines.
std::int64_t sum_in(const std::string& path, std::initializer_list<std::string_view> keys) {
  std::ifstream file(path);
  std::int64_t sum = 0;
  std::int64_t value = 0;
  for (std::string key; file >> key >> value; file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    if (std::ranges::find(keys, key) != keys.end()) sum += value;
  }
  return sum;
}

std::int64_t of_machine() {
  const std::int64_t kib = sum_in("/proc/meminfo", {"MemAvailable:"});
  return kib > 0 ? kib * 1024 : kUnknown;
}

std::int64_t of_group(const std::string& folder, const char* limit_file, const char* usage_file,
                      std::initializer_list<std::string_view> caches) {
  const std::int64_t limit = number_in(folder + limit_file);
  const std::int64_t usage = number_in(folder + usage_file);
  if (limit == kUnknown || usage == kUnknown) return kUnknown;
  return std::max<std::int64_t>(limit - usage + sum_in(folder + "/memory.stat", caches), 0);
}

std::int64_t of_groups() {
  std::int64_t least = of_group("/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                {"total_inactive_file", "total_active_file"});
  // Every group from the own one up may have a limit; a container sees its own as the root.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string path = line.substr(3);; path.erase(path.rfind('/'))) {
      least = std::min(
          least, of_group("/sys/fs/cgroup" + path, "/memory.max", "/memory.current", {"inactive_file", "active_file"}));
      if (path.empty()) break;
    }
  }
  return least;
}

std::int64_t of_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const std::int64_t pages = number_in("/proc/self/statm");
  const std::int64_t used = pages == kUnknown ? 0 : pages * ::sysconf(_SC_PAGESIZE);
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, static_cast<rlim_t>(kUnknown)));
  return std::max<std::int64_t>(most - used, 0);
}

}  // namespace

std::int64_t available_memory() noexcept {
  try {
    return std::min({of_machine(), of_groups(), of_address_space()});
  } catch (...) {  // no memory for the paths
    return 0;
  }
}

}  // namespace lamina
