#include "lamina/nn/optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"

namespace lamina::nn {
namespace {

class OptimizerTest : public ::testing::Test {
 protected:
  Device cpu = cpu_device({.threads = 1});
  Param w{Tensor::from(cpu, {2}, {1.0f, 2.0f})};
  Param bias{Tensor::from(cpu, {1}, {4.0f})};

  // Gradient g for every element of both.
  Gradients gradients(double g, bool with_bias = true) {
    Tape tape;
    Var loss = sum(tape.param(w) * g);
    if (with_bias) loss = loss + sum(tape.param(bias) * g);
    return tape.backward(loss);
  }
  std::unique_ptr<Optimizer> make(const OptimizerOptions& options) {
    return make_optimizer({{"w", &w, true}, {"bias", &bias, false}}, options);
  }
  float value(const Param& p) { return to_vector<float>(p.value())[0]; }
};

TEST_F(OptimizerTest, SgdMomentumAndDecay) {
  auto o = make({.name = "sgd", .momentum = 0.5, .weight_decay = 0.1});
  o->step(gradients(1), 0.1);  // v = 1 + 0.1 * 1
  EXPECT_NEAR(value(w), 1 - 0.1 * 1.1, 1e-6);
  EXPECT_NEAR(value(bias), 4 - 0.1, 1e-6);  // biases do not decay
  o->step(gradients(1), 0.1);               // v = 0.5 * 1.1 + 1 + 0.1 * 0.89
  EXPECT_NEAR(value(w), 0.89 - 0.1 * (0.55 + 1.089), 1e-6);
  EXPECT_EQ(o->steps(), 2);
}

TEST_F(OptimizerTest, NesterovLooksAhead) {
  auto o = make({.name = "sgd", .momentum = 0.9, .nesterov = true});
  o->step(gradients(1), 0.1);
  EXPECT_NEAR(value(w), 1 - 0.1 * 1.9, 1e-6);
}

TEST_F(OptimizerTest, AdamAddsEpsilonAfterTheCorrection) {
  auto o = make({.name = "adam", .epsilon = 0.1});
  const float before = value(w);
  o->step(gradients(1), 1e-3);
  EXPECT_NEAR(before - value(w), 9.0909e-4, 2e-7);
}

TEST_F(OptimizerTest, AdamWDecayIsScaledByTheRate) {
  auto o = make({.name = "adamw", .weight_decay = 0.1});
  o->step(gradients(0), 0.5);
  EXPECT_NEAR(value(w), 1 - 0.5 * 0.1, 1e-6);
  EXPECT_NEAR(value(bias), 4, 1e-6);
}

TEST_F(OptimizerTest, ClippingActsOnTheGlobalNorm) {
  auto o = make({.name = "sgd", .momentum = 0, .clip = 1});
  o->step(gradients(2), 1);  // three elements of 2: norm sqrt(12)
  EXPECT_NEAR(o->last_norm(), std::sqrt(12.0), 1e-6);
  EXPECT_NEAR(value(w), 1 - 2 / std::sqrt(12.0), 1e-6);
}

TEST_F(OptimizerTest, AbsentGradientLeavesTheParameterAlone) {
  auto o = make({.name = "adamw", .weight_decay = 0.1});
  o->step(gradients(1, false), 0.1);
  EXPECT_EQ(value(bias), 4);
  EXPECT_EQ(bias.version(), 0u);
  EXPECT_EQ(w.version(), 1u);
}

TEST_F(OptimizerTest, WritesInPlaceUnlessSomebodyHoldsTheValue) {
  auto o = make({.name = "sgd"});
  o->step(gradients(1), 0.1);
  const auto copied = cpu.counts().updates_copied;
  const auto in_place = cpu.counts().updates_in_place;
  o->step(gradients(1), 0.1);
  EXPECT_EQ(cpu.counts().updates_copied, copied);
  EXPECT_EQ(cpu.counts().updates_in_place, in_place + 4);  // two values, two velocities
  const Tensor held = w.value();
  const auto before = to_vector<float>(held);
  o->step(gradients(1), 0.1);
  EXPECT_EQ(cpu.counts().updates_copied, copied + 1);
  EXPECT_EQ(to_vector<float>(held), before);
}

TEST_F(OptimizerTest, BadOptionsAreNamed) {
  EXPECT_THROW(make({.name = "adamz"}), ValueError);
  EXPECT_THROW(make({.momentum = 1}), ValueError);
  EXPECT_THROW(make({.clip = -1}), ValueError);
  EXPECT_THROW(make({})->step(gradients(1), NAN), ValueError);
  EXPECT_EQ(value(w), 1);
}

}  // namespace
}  // namespace lamina::nn
