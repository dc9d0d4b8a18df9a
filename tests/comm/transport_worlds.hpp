// Worlds of bare transports, a thread or a process a rank.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lamina/dist/comm/transport/shared_memory.hpp"
#include "lamina/dist/comm/transport/tcp.hpp"
#include "tests/comm/local_rendezvous.hpp"

namespace lamina::comm {

struct WorldOptions {
  std::size_t ring_bytes = std::size_t{1} << 20;
  int connections = 1;
};

inline std::unique_ptr<Transport> make_transport(const std::string& kind, Rendezvous& rendezvous, int rank, int size,
                                                 const WorldOptions& options = {}) {
  if (kind == "shm") {
    SharedMemoryOptions shm;
    shm.ring_bytes = options.ring_bytes;
    return shared_memory_transport(rendezvous, rank, size, shm);
  }
  TcpOptions tcp;
  tcp.connections = options.connections;
  return tcp_transport(rendezvous, rank, size, tcp);
}

using RankBody = std::function<void(Transport&)>;

/// Runs body on a thread a rank; rethrows what the first rank threw.
inline void run_threads(const std::string& kind, int size, const WorldOptions& options, const RankBody& body) {
  std::vector<std::unique_ptr<LocalRendezvous>> meeting = LocalRendezvous::of(size);
  std::vector<std::unique_ptr<Transport>> made(size);
  if (kind == "shm") {
    SharedMemoryOptions shm;
    shm.ring_bytes = options.ring_bytes;
    made = shared_memory_transports(size, shm);
  }
  std::vector<std::exception_ptr> failures(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        std::unique_ptr<Transport> transport = std::move(made[rank]);
        if (!transport) transport = make_transport(kind, *meeting[rank], rank, size, options);
        body(*transport);
      } catch (...) {
        failures[rank] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

/// A process a rank. Ends what is left of them.
class Processes {
 public:
  Processes(const std::string& kind, int size, const WorldOptions& options, const RankBody& body) {
    std::vector<std::unique_ptr<LocalRendezvous>> meeting = LocalRendezvous::of(size);
    std::fflush(nullptr);
    for (int rank = 0; rank < size; ++rank) {
      const pid_t pid = ::fork();
      if (pid != 0) {
        pids_.push_back(pid);
        codes_.push_back(0);
        continue;
      }
      std::unique_ptr<LocalRendezvous> mine = std::move(meeting[rank]);
      meeting.clear();
      int code = 0;
      try {
        const std::unique_ptr<Transport> transport = make_transport(kind, *mine, rank, size, options);
        body(*transport);
      } catch (const std::exception& e) {
        std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
        code = 1;
      }
      ::_exit(code);
    }
  }
  ~Processes() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (std::size_t rank = 0; rank < pids_.size(); ++rank) wait(static_cast<int>(rank));
  }
  void signal(int rank, int number) const { ::kill(pids_[rank], number); }
  /// The exit code, or -signal.
  int wait(int rank) {
    if (pids_[rank] <= 0) return codes_[rank];
    int status = 0;
    while (::waitpid(pids_[rank], &status, 0) < 0) {
    }
    pids_[rank] = 0;
    return codes_[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  std::vector<pid_t> pids_;
  std::vector<int> codes_;
};

}  // namespace lamina::comm
