// `lamina launch`: the ranks of one host as processes, and nothing left of them whatever happens.
#pragma once

#include <string>
#include <vector>

namespace lamina::tools {

struct LaunchOptions {
  int ranks = 0;
  std::string host = "127.0.0.1";    ///< numeric address where rank 0 listens
  std::vector<std::string> env;      ///< NAME=VALUE, for all ranks
  bool prefix = false;               ///< "[rank] " before each line of output
  double grace = 3;                  ///< seconds from TERM to KILL
  std::vector<std::string> program;  ///< and its arguments
};

/// Runs the program once a rank and waits for all. Returns 0 when all ranks did; else the exit code of the first that
/// did not, 128 + N for one killed by signal N or when the launch was ended by signal N, 126 or 127 for a program that
/// cannot be run. Throws ValueError for options that make no sense, IoError when it cannot listen at the address.
///
/// A process in between (the keeper) has the ranks as children and outlives a launcher that is killed by just so much
/// as it takes to stop them. Both adopt orphans, so that what a rank leaves running is found and stopped too.
int launch(const LaunchOptions& options);

}  // namespace lamina::tools
