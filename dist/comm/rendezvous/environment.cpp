#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "lamina/dist/comm/transport/socket.hpp"

namespace lamina::comm {

namespace {

constexpr std::string_view kWhere = "environment";

/// A variable's value; one that is set to nothing counts as not set.
std::optional<std::string> variable(const char* name) {
  const char* value = name == nullptr ? nullptr : std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::optional<int> number(const char* name) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    fail<ValueError>(kWhere, "{} is {}; a whole number from 0 to {} is needed", name, quote(*text),
                     std::numeric_limits<int>::max());
  }
  return value;
}

struct Launcher {
  const char* name;
  const char *rank, *size, *local_rank, *local_size;
  const char* sign;                // the launcher is there only when this is set too
  std::array<const char*, 2> job;  // what tells its runs apart
};
// The inner one first: torchrun in an mpirun in a Slurm job is torchrun's.
constexpr Launcher kLaunchers[] = {
    {"lamina",
     "LAMINA_RANK",
     "LAMINA_SIZE",
     "LAMINA_LOCAL_RANK",
     "LAMINA_LOCAL_SIZE",
     nullptr,
     {"LAMINA_JOB", nullptr}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     nullptr,
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, {nullptr, nullptr}},
    // A batch script has the numbers too, and is nobody's rank: a step has its own list of nodes.
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     nullptr,
     "SLURM_STEP_NODELIST",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

const Launcher* launcher_here() {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.sign != nullptr && !variable(launcher.sign)) continue;
    const auto rank = number(launcher.rank), size = number(launcher.size);
    if (!rank && !size) continue;
    if (!rank || !size) {
      fail<ValueError>(kWhere, "{} is set and {} is not; {} sets both", rank ? launcher.rank : launcher.size,
                       rank ? launcher.size : launcher.rank, launcher.name);
    }
    return &launcher;
  }
  return nullptr;
}

/// Both of two numbers, the first below the second.
void check_below(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank >= size) {
    fail<ValueError>(kWhere, "{}={} and {}={} contradict each other: ranks are from 0 to {}", rank_name, rank,
                     size_name, size, "the size less 1");
  }
}

/// "n0" of "n[0-3,7],m1"; "r1n01" of "r[1-2]n[01-04]".
std::string first_host(std::string_view list) {
  std::string out;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      out += list[i];
      continue;
    }
    const std::size_t close = std::min(list.find(']', i), list.size());
    out += list.substr(i + 1, std::min(list.find_first_of("-,]", i), close) - i - 1);
    i = close;
  }
  return out;
}

/// Below the ports that systems give out by themselves, the same for all ranks of a job.
int port_of(const std::string& job) {
  constexpr int kFirst = 15000, kLast = 31999;
  const std::uint64_t hash = hash_bytes(std::as_bytes(std::span(job.data(), job.size())));
  return kFirst + static_cast<int>(hash % (kLast - kFirst + 1));
}

std::string tcp(const std::string& host, int port) {
  return fmt::format(fmt::runtime(host.find(':') == std::string::npos ? "tcp://{}:{}" : "tcp://[{}]:{}"), host, port);
}

std::string slurm_place(const std::string& job) {
  if (number("SLURM_STEP_NUM_NODES").value_or(0) == 1) return tcp("127.0.0.1", port_of(job));
  const std::string list = *variable("SLURM_STEP_NODELIST");
  const std::string host = first_host(list);
  if (host.empty()) fail<ValueError>(kWhere, "SLURM_STEP_NODELIST={} names no host", quote(list));
  const auto launched_from = variable("SLURM_LAUNCH_NODE_IPADDR");
  if (launched_from) {
    // Nodes whose names are Slurm's only: then all there is to know is where srun was.
    try {
      (void)resolve(host, 0);
    } catch (const IoError&) {
      return tcp(*launched_from, port_of(job));
    }
  }
  return tcp(host, port_of(job));
}

std::string place_of(const Launcher& launcher, const Meeting& meeting) {
  if (const auto place = variable("LAMINA_MEETING")) return *place;
  const auto host = variable("MASTER_ADDR");
  auto port = number("MASTER_PORT");
  if (host && port) {
    // The agent of torchrun may have its own store there; the port after it is for us.
    if (variable("TORCHELASTIC_USE_AGENT_STORE") == "True") ++*port;
    if (*port < 1 || *port > 65535) fail<ValueError>(kWhere, "MASTER_PORT={} is no port from 1 to 65535", *port);
    return tcp(*host, *port);
  }
  if (host || port) {
    fail<ValueError>(kWhere, "{} is set and {} is not; both are needed, or LAMINA_MEETING",
                     host ? "MASTER_ADDR" : "MASTER_PORT", host ? "MASTER_PORT" : "MASTER_ADDR");
  }
  if (meeting.size == 1) return {};
  if (std::string_view(launcher.name) == "Slurm") return slurm_place(meeting.job);
  const bool mpi = std::string_view(launcher.name) == "Open MPI" || std::string_view(launcher.name) == "MPICH";
  if (mpi && meeting.local_size == meeting.size) {
    return tcp("127.0.0.1", port_of(meeting.job));
  }
  fail<ValueError>(kWhere, "{} says {}={} but not where rank 0 is: set LAMINA_MEETING, or MASTER_ADDR and MASTER_PORT",
                   launcher.name, launcher.size, meeting.size);
}

std::chrono::milliseconds timeout_or(std::chrono::milliseconds otherwise) {
  const auto text = variable("LAMINA_TIMEOUT");
  if (!text) return otherwise;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  if (error != std::errc() || end != text->data() + text->size() || !(seconds >= 0.001 && seconds <= 1e8)) {
    fail<ValueError>(kWhere, "LAMINA_TIMEOUT is {}; seconds from 0.001 to 1e8 are needed", quote(*text));
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

}  // namespace

Meeting meeting_from_environment() {
  Meeting meeting;
  meeting.timeout = timeout_or(meeting.timeout);
  const Launcher* launcher = launcher_here();
  if (launcher == nullptr) {
    if (const auto job = variable("LAMINA_JOB")) meeting.job = *job;
    return meeting;
  }
  meeting.rank = *number(launcher->rank);
  meeting.size = *number(launcher->size);
  check_below(launcher->rank, meeting.rank, launcher->size, meeting.size);
  meeting.local_rank = number(launcher->local_rank).value_or(-1);
  meeting.local_size = number(launcher->local_size).value_or(-1);
  if (meeting.local_size >= 0) {
    check_below(launcher->local_rank, meeting.local_rank, launcher->local_size, meeting.local_size);
    if (meeting.local_size > meeting.size) {
      fail<ValueError>(kWhere, "{}={} and {}={} contradict each other: a host has at most all ranks",
                       launcher->local_size, meeting.local_size, launcher->size, meeting.size);
    }
  }
  if (const auto job = variable("LAMINA_JOB")) {
    meeting.job = *job;
  } else {
    for (const char* part : launcher->job) {
      if (const auto value = variable(part)) meeting.job += "-" + *value;
    }
    // MPICH has no id of its own; on one host its ranks are children of one process.
    if (std::string_view(launcher->name) == "MPICH") meeting.job += fmt::format("-mpich-{}", ::getppid());
  }
  meeting.place = place_of(*launcher, meeting);
  return meeting;
}

}  // namespace lamina::comm
