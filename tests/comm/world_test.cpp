// connect(): from a meeting place to a group, over each transport by name.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/world.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class World : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(World, MeetsAndReduces) {
  const auto& [transport, name] = GetParam();
  const fs::path folder = fs::path(testing::TempDir()) / ("world_" + transport + std::to_string(::getpid()));
  fs::create_directory(folder);
  constexpr int kSize = 3;
  std::vector<std::string> names(kSize);
  std::vector<float> sums(kSize);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto r = static_cast<std::size_t>(rank);
        Meeting meeting;
        meeting.rank = rank;
        meeting.size = kSize;
        meeting.place = "file://" + folder.string();
        meeting.timeout = 20s;
        ConnectOptions options;
        options.transport = transport;
        if (transport == "tcp") options.link_model = Transport::Link{1e-4, 1e9};
        Group group = connect(meeting, options);
        std::vector<float> value{static_cast<float>(rank + 1)};
        group.all_reduce(value).wait();
        sums[r] = value[0];
        names[r] = group.transport_name();
      } catch (const std::exception& e) {
        ADD_FAILURE() << "rank " << rank << ": " << e.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (std::size_t r = 0; r < kSize; ++r) {
    EXPECT_EQ(sums[r], 6.0f);
    EXPECT_EQ(names[r], name);
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

INSTANTIATE_TEST_SUITE_P(Transports, World,
                         ::testing::Values(std::tuple("auto", "shm"), std::tuple("shm", "shm"),
                                           std::tuple("tcp", "tcp behind a link of 100 us, 1 GB/s")),
                         [](const auto& info) { return std::get<0>(info.param); });

TEST(WorldOfOne, NeedsNoPlace) {
  Group group = connect(Meeting{});
  std::vector<double> value{2.5};
  group.all_reduce(value, Reduction::mean).wait();
  group.barrier().wait();
  EXPECT_EQ(value[0], 2.5);
}

TEST(WorldOfOne, AnUnknownTransportIsNamed) {
  ConnectOptions options;
  options.transport = "pigeon";
  EXPECT_THROW(connect(Meeting{}, options), ValueError);
}

}  // namespace
}  // namespace lamina::comm
