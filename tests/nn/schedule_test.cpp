#include "lamina/nn/schedule.hpp"

#include <gtest/gtest.h>

#include "lamina/core/error.hpp"

namespace lamina::nn {
namespace {

TEST(LrSchedule, WarmUpRisesAndReachesTheBase) {
  const LrSchedule s = parse_lr_schedule("constant:warmup=4", 0.8, 100);
  EXPECT_DOUBLE_EQ(s.at(0), 0.2);
  EXPECT_DOUBLE_EQ(s.at(3), 0.8);
  EXPECT_DOUBLE_EQ(s.at(99), 0.8);
}

TEST(LrSchedule, WarmUpBelowOneIsAShare) { EXPECT_EQ(parse_lr_schedule("cosine:warmup=0.1", 1, 200).warmup, 20); }

TEST(LrSchedule, CosineAndLinearEndAtTheFloor) {
  for (const char* text : {"cosine:floor=0.1", "linear:floor=0.1"}) {
    const LrSchedule s = parse_lr_schedule(text, 2, 50);
    EXPECT_DOUBLE_EQ(s.at(0), 2) << text;
    EXPECT_NEAR(s.at(50), 0.2, 1e-12) << text;
    EXPECT_NEAR(s.at(25), 1.1, 1e-12) << text;
    EXPECT_NEAR(s.at(1000), 0.2, 1e-12) << text;
  }
}

TEST(LrSchedule, StepFalls) {
  const LrSchedule s = parse_lr_schedule("step:falls=2,gamma=0.5", 1, 90);
  EXPECT_DOUBLE_EQ(s.at(29), 1);
  EXPECT_DOUBLE_EQ(s.at(30), 0.5);
  EXPECT_DOUBLE_EQ(s.at(60), 0.25);
}

TEST(LrSchedule, BadTextNamesWhatIsAllowed) {
  for (const char* text : {"cosin", "cosine:flor=1", "cosine:floor=2", "cosine:floor", "step:gamma=x", ""}) {
    EXPECT_THROW(parse_lr_schedule(text, 1, 10), ValueError) << text;
  }
}

TEST(LrSchedule, TheListHasEveryOptionWithItsDefault) {
  const std::vector<std::string> all = lr_schedules();
  EXPECT_EQ(all.size(), 4u);
  for (const std::string& text : all) {
    const LrSchedule listed = parse_lr_schedule(text, 2, 60);
    const LrSchedule plain = parse_lr_schedule(text.substr(0, text.find(':')), 2, 60);
    for (int step = 0; step < 60; ++step) EXPECT_EQ(listed.at(step), plain.at(step)) << text;
  }
}

}  // namespace
}  // namespace lamina::nn
