// What the launcher's tests launch: a rank that meets the others and then does as it is told.
//   meet [ROUNDS]     meets ROUNDS times, prints "rank R of N has met"
//   meet hang         meets, prints, waits for ever
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

int main(int argc, char** argv) {
  using namespace lamina;
  try {
    const comm::Meeting meeting = comm::meeting_from_environment();
    const auto place = comm::rendezvous(meeting);
    const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
    for (int i = 0; i < rounds; ++i) {
      const auto blobs = place->exchange(fmt::format("{}.{}", meeting.rank, i));
      for (int r = 0; r < meeting.size; ++r) {
        if (blobs[static_cast<std::size_t>(r)] != fmt::format("{}.{}", r, i)) return 3;
      }
    }
    fmt::print("rank {} of {} has met\n", meeting.rank, meeting.size);
    std::fflush(stdout);
    if (argc > 1 && std::strcmp(argv[1], "hang") == 0) ::pause();
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 4;
  }
  return 0;
}
