// All-reduce of f32 sums by MPI: mpirun -n RANKS mpi. Transport and pinning are mpirun's options.
#include <mpi.h>

#include "timing.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const std::size_t bytes : bench::sizes()) {
    std::vector<float> data(bytes / sizeof(float), 1.0f / 3);
    const double ms = bench::time_size(
        bytes, [] { MPI_Barrier(MPI_COMM_WORLD); },
        [&] {
          MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(data.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        });
    if (rank == 0) bench::print_row(bytes, ms);
  }
  MPI_Finalize();
  return 0;
}
