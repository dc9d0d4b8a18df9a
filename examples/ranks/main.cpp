// A program of several ranks: lamina launch -n 4 example_ranks, or mpirun, srun, torchrun; alone without one.
#include <cstdio>
#include <vector>

#include "lamina/dist/comm/world.hpp"

using namespace lamina;

int main() try {
  comm::Group group = comm::connect();
  std::vector<float> values(1000, static_cast<float>(group.rank()));
  comm::Work work = group.all_reduce(values, comm::Reduction::mean);
  // ... compute meanwhile ...
  work.wait();
  std::printf("rank %d of %d over %s: the mean of all ranks is %g\n", group.rank(), group.size(),
              group.transport_name().c_str(), static_cast<double>(values[0]));
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
