#include "lamina/nn/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/nn/layers.hpp"

namespace lamina::nn {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : folder(fs::temp_directory_path() / fmt::format("lamina-checkpoint-{}", getpid())) {
    fs::remove_all(folder);
  }
  ~CheckpointTest() override { fs::remove_all(folder); }

  std::vector<NamedTensor> tensors(float value) const {
    return {{"model.w", Tensor::from(cpu, {3}, {value, value, value})}};
  }
  float stored() const { return to_vector<float>(CheckpointStore::newest(folder)->tensors.tensor("model.w", cpu))[0]; }

  Device cpu = cpu_device({.threads = 1});
  fs::path folder;
};

TEST_F(CheckpointTest, NewestComesBackAndOldOnesGo) {
  CheckpointStore store(folder, 2);
  for (int step = 0; step < 5; ++step) store.save(step, tensors(static_cast<float>(step)), {{"n", step}});
  const auto loaded = CheckpointStore::newest(folder);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->step, 4);
  EXPECT_EQ(loaded->state["n"], 4);
  EXPECT_EQ(stored(), 4);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 4);  // two of two files
}

TEST_F(CheckpointTest, DamagedOnesArePassedOverAndNamed) {
  CheckpointStore store(folder, 3);
  for (int step = 1; step <= 3; ++step) store.save(step, tensors(static_cast<float>(step)), {});
  {
    std::fstream file(folder / "step-00000003.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  fs::resize_file(folder / "step-00000002.json", 10);
  std::vector<std::string> skipped;
  EXPECT_EQ(CheckpointStore::newest(folder, &skipped)->step, 1);
  EXPECT_EQ(skipped.size(), 2u);
}

TEST_F(CheckpointTest, EmptyOrMissingFolder) {
  fs::create_directories(folder);
  EXPECT_FALSE(CheckpointStore::newest(folder));
  EXPECT_THROW(CheckpointStore::newest(folder / "none"), IoError);
  EXPECT_THROW(CheckpointStore(folder, 0), ValueError);
}

TEST_F(CheckpointTest, KilledAtAnyMomentOneIsWhole) {
  CheckpointStore(folder, 1).save(0, tensors(0), {});
  for (int round = 1; round < 40; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      CheckpointStore store(folder, 1);
      for (int step = 0;; ++step) store.save(round * 100000 + step, tensors(static_cast<float>(round)), {});
    }
    ::usleep(static_cast<useconds_t>(500 + 1700 * (round % 13)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto loaded = CheckpointStore::newest(folder);
    ASSERT_TRUE(loaded) << "round " << round;
    const auto values = to_vector<float>(loaded->tensors.tensor("model.w", cpu));
    EXPECT_EQ(values[0], static_cast<float>(loaded->step / 100000)) << "round " << round;
  }
}

TEST_F(CheckpointTest, AnotherModelIsAnErrorThatChangesNothing) {
  Builder b{.device = cpu, .seed = 1};
  Linear small(b, 3, 2), large(b, 3, 4);
  CheckpointStore(folder, 1).save(1, state_of(small, nullptr), {});
  const auto before = to_vector<float>(large.weight.value());
  const auto loaded = CheckpointStore::newest(folder);
  EXPECT_THROW(restore_state(loaded->tensors, large, nullptr), FormatError);
  EXPECT_EQ(to_vector<float>(large.weight.value()), before);
  Linear same(b, 3, 2);
  restore_state(loaded->tensors, same, nullptr);
  EXPECT_EQ(to_vector<float>(same.weight.value()), to_vector<float>(small.weight.value()));
  const auto optimizer = make_optimizer(same.parameters(), {});
  EXPECT_THROW(restore_state(loaded->tensors, same, optimizer.get()), FormatError);  // no velocities
}

}  // namespace
}  // namespace lamina::nn
