// All-reduce of f32 sums by Gloo over TCP on the loopback interface, the best of its algorithms at each size:
// gloo RANKS. Forks its ranks.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "timing.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int ranks = std::atoi(argv[1]);
  char folder[] = "/tmp/gloo_ranks_XXXXXX";
  if (mkdtemp(folder) == nullptr) return 1;
  int rank = 0;
  for (int r = 1; r < ranks && rank == 0; ++r) {
    if (fork() == 0) rank = r;
  }
  {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(folder);
    const auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    context->connectFullMesh(store, device);
    std::uint32_t tag = 1;
    for (const std::size_t bytes : bench::sizes()) {
      const std::size_t count = bytes / sizeof(float);
      std::vector<float> data(count, 1.0f / 3);
      const std::vector<float*> pointers{data.data()};
      const auto n = static_cast<int>(count);
      auto barrier = [&] {
        gloo::BarrierOptions options(context);
        options.setTag(1000000 + tag++);
        gloo::barrier(options);
      };
      double best = bench::time_size(bytes, barrier, [&] {
        gloo::AllreduceOptions options(context);
        options.setOutputs(pointers, count);
        options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
        void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
        options.setReduceFunction(sum);
        options.setTag(tag++);
        gloo::allreduce(options);
      });
      auto run = [&](std::unique_ptr<gloo::Algorithm> algorithm) {
        best = std::min(best, bench::time_size(bytes, barrier, [&] { algorithm->run(); }));
      };
      run(std::make_unique<gloo::AllreduceRingChunked<float>>(context, pointers, n));
      run(std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, pointers, n));
      // Waits for ever among four.
      if (ranks == 2) run(std::make_unique<gloo::AllreduceRing<float>>(context, pointers, n));
      if (rank == 0) bench::print_row(bytes, best);
    }
  }
  if (rank != 0) _exit(0);
  while (wait(nullptr) > 0) {
  }
  std::filesystem::remove_all(folder);
  return 0;
}
