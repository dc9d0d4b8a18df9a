// All-reduce of f32 sums by lamina: lamina TRANSPORT RANKS, with TRANSPORT one of threads, shm, tcp. Forks its ranks.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "lamina/dist/comm/world.hpp"
#include "timing.hpp"

namespace {

void run(lamina::comm::Group& group) {
  for (const std::size_t bytes : bench::sizes()) {
    std::vector<float> data(bytes / sizeof(float), 1.0f / 3);
    const double ms = bench::time_size(
        bytes, [&] { group.barrier().wait(); }, [&] { group.all_reduce(data).wait(); });
    if (group.rank() == 0) bench::print_row(bytes, ms);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string transport = argv[1];
  const int ranks = std::atoi(argv[2]);
  if (transport == "threads") {
    std::vector<lamina::comm::Group> groups = lamina::comm::Group::threads(ranks);
    std::vector<std::thread> threads;
    for (auto& group : groups) threads.emplace_back([&group] { run(group); });
    for (std::thread& t : threads) t.join();
    return 0;
  }
  char folder[] = "/tmp/lamina_ranks_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  int rank = 0;
  for (int r = 1; r < ranks && rank == 0; ++r) {
    if (fork() == 0) rank = r;
  }
  {
    lamina::comm::Group group = lamina::comm::connect(
        {.rank = rank, .size = ranks, .place = std::string("file://") + folder}, {.transport = transport});
    run(group);
  }
  if (rank != 0) _exit(0);
  while (wait(nullptr) > 0) {
  }
  std::filesystem::remove_all(folder);
  return 0;
}
