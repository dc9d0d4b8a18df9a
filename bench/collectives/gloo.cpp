// All-reduce of f32 sums by Gloo over TCP on the loopback interface, the best of its algorithms at each size:
// gloo RANKS. Each algorithm has processes of its own: Gloo's older and newer ones hang when they share connections.
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "timing.hpp"

namespace {

using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Pointers = std::vector<float*>;

constexpr int kAlgorithms = 4;

std::unique_ptr<gloo::Algorithm> older(int algorithm, const Context& context, const Pointers& data, int count) {
  if (algorithm == 1) return std::make_unique<gloo::AllreduceRingChunked<float>>(context, data, count);
  if (algorithm == 2) return std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context, data, count);
  return std::make_unique<gloo::AllreduceRing<float>>(context, data, count);
}

void rank_of(int rank, int ranks, int algorithm, const std::string& folder, double* best) {
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  gloo::rendezvous::FileStore store(folder);
  const Context context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  context->connectFullMesh(store, device);
  std::uint32_t tag = 1;
  const auto barrier = [&] {
    gloo::BarrierOptions options(context);
    options.setTag(tag++);
    gloo::barrier(options);
  };
  for (const std::size_t bytes : bench::sizes()) {
    std::vector<float> data(bytes / sizeof(float), 1.0f / 3);
    const Pointers pointers{data.data()};
    std::unique_ptr<gloo::Algorithm> object;
    if (algorithm > 0) object = older(algorithm, context, pointers, static_cast<int>(data.size()));
    const double ms = bench::time_size(bytes, barrier, [&] {
      if (object) return object->run();
      gloo::AllreduceOptions options(context);
      options.setOutputs(pointers, data.size());
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      void (*sum)(void*, const void*, const void*, std::size_t) = &gloo::sum<float>;
      options.setReduceFunction(sum);
      options.setTag(tag++);
      gloo::allreduce(options);
    });
    barrier();  // an object's buffers may go only when nobody sends to them any more
    if (rank == 0) *best = std::min(*best, ms);
    ++best;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int ranks = std::atoi(argv[1]);
  const std::vector<std::size_t> sizes = bench::sizes();
  void* memory =
      mmap(nullptr, sizes.size() * sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto* best = static_cast<double*>(memory);
  std::fill_n(best, sizes.size(), std::numeric_limits<double>::infinity());
  for (int algorithm = 0; algorithm < kAlgorithms; ++algorithm) {
    char folder[] = "/tmp/gloo_ranks_XXXXXX";
    if (mkdtemp(folder) == nullptr) return 1;
    for (int rank = 0; rank < ranks; ++rank) {
      if (fork() != 0) continue;
      alarm(60);  // of what hangs all the same, the sizes before count
      rank_of(rank, ranks, algorithm, folder, best);
      _exit(0);
    }
    while (wait(nullptr) > 0) {
    }
    std::filesystem::remove_all(folder);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) bench::print_row(sizes[i], best[i]);
  return 0;
}
