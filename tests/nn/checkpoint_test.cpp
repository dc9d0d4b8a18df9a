#include "lamina/nn/checkpoint.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
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

TEST_F(CheckpointTest, AStepSavedAgainReplacesItAndLeavesNothing) {
  CheckpointStore store(folder, 2);
  for (int round = 0; round < 4; ++round) {
    store.save(7, tensors(static_cast<float>(round)), {{"round", round}});
    EXPECT_EQ(stored(), static_cast<float>(round));
    EXPECT_EQ(CheckpointStore::newest(folder)->state["round"], round);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 2) << "round " << round;
  }
  for (int step = 8; step < 10; ++step) store.save(step, tensors(0), {});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 4);
}

// Runs f in a process that is killed at its `calls`th entry to or return from the system. Returns whether it got there,
// nothing where processes may not be traced.
template <class F>
std::optional<bool> killed_at(int calls, F f) {
  const pid_t child = fork();
  if (child == 0) {
    if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::raise(SIGSTOP);
    try {
      f();
    } catch (...) {
      ::_exit(3);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  for (int i = 0; i < calls && WIFSTOPPED(status); ++i) {
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
  }
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
    return true;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return std::nullopt;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  return false;
}

TEST_F(CheckpointTest, KilledAtEachSystemCallOfSavingAStepAgain) {
  CheckpointStore(folder, 1).save(7, tensors(0), {{"value", 0}});
  int old_ones = 0, new_ones = 0;
  for (int calls = 0;; ++calls) {
    const float before = stored(), after = before + 1;
    const auto killed = killed_at(calls, [&] {
      CheckpointStore(folder, 1).save(7, tensors(after), {{"value", after}});
    });
    if (!killed) GTEST_SKIP() << "processes may not be traced here";
    const auto loaded = CheckpointStore::newest(folder);
    ASSERT_TRUE(loaded) << "killed at " << calls;
    ASSERT_EQ(loaded->step, 7);
    EXPECT_TRUE(stored() == before || stored() == after) << stored();
    EXPECT_EQ(loaded->state["value"], stored()) << "killed at " << calls;
    (stored() == before ? old_ones : new_ones) += 1;
    if (!*killed) break;
  }
  EXPECT_GT(old_ones, 20);
  EXPECT_GT(new_ones, 1);
}

// A full disk, by way of a limit on the size of files: in the tensors, and in the manifest.
TEST_F(CheckpointTest, AFailedSaveOfAStepLeavesTheOldOne) {
  CheckpointStore(folder, 1).save(7, tensors(1), {});
  const auto files = [&] { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); };
  for (const rlim_t limit : {16u, 1000u}) {
    const pid_t child = fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit bytes{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &bytes);
      try {
        CheckpointStore(folder, 1).save(7, tensors(2), {{"long", std::string(5000, 'x')}});
      } catch (const IoError&) {
        ::_exit(0);
      } catch (...) {
      }
      ::_exit(1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(stored(), 1);
    EXPECT_EQ(files(), 2) << "limit " << limit;
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
