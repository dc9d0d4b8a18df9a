// resnet50 as a whole. Minutes, not seconds: labelled long.
#include <gtest/gtest.h>

#include <cmath>

#include "lamina/core/rng.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cross_entropy/op.hpp"
#include "lamina/models/registry.hpp"
#include "lamina/nn/optimizer.hpp"

namespace lamina::nn {
namespace {

using Values = std::vector<std::vector<double>>;

// `images` of a side of `side` pixels, and one label each.
struct Images {
  Images(const Device& device, std::int64_t images, std::int64_t side, std::int64_t classes, DType dtype) {
    const Rng rng(5);
    std::vector<float> pixels(static_cast<std::size_t>(images * 3 * side * side));
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(rng.normal(0, i));
    std::vector<std::int64_t> classes_of(static_cast<std::size_t>(images));
    for (std::size_t i = 0; i < classes_of.size(); ++i) {
      classes_of[i] = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(classes), 1, i));
    }
    const Tensor narrow = Tensor::from(device, {images, 3, side, side}, pixels);
    x = dtype == DType::f32 ? narrow : cast(narrow, dtype);
    labels = Tensor::from(device, {images}, classes_of);
  }
  Tensor x, labels;
};

TEST(ResNet50, TrainingStepAt224Pixels) {
  const Device cpu = cpu_device();
  Builder builder{.device = cpu, .seed = 1};
  const auto model = models::make_model("resnet50", {.example = {3, 224, 224}, .classes = 1000}, builder);
  const auto optimizer = make_optimizer(model->parameters(), {.name = "sgd", .momentum = 0});
  const Images images(cpu, 2, 224, 1000, DType::f32);
  std::vector<double> losses;
  for (int step = 0; step < 2; ++step) {
    Gradients gradients;
    {
      Tape tape;
      const Var loss = cross_entropy((*model)(tape.constant(images.x)), images.labels);
      losses.push_back(loss.value().item());
      gradients = tape.backward(loss);
    }
    for (const Module::NamedParam& p : model->parameters()) {
      ASSERT_TRUE(gradients.has(*p.param)) << p.name;
      for (const float g : to_vector<float>(gradients.of(*p.param))) ASSERT_TRUE(std::isfinite(g)) << p.name;
    }
    optimizer->step(gradients, 0.01);
  }
  ASSERT_TRUE(std::isfinite(losses[0]) && std::isfinite(losses[1])) << losses[0] << ", " << losses[1];
  EXPECT_NEAR(losses[0], std::log(1000.0), 1.5);
  EXPECT_LT(losses[1], losses[0] - 1e-3);  // downhill, along the gradient
  EXPECT_GT(losses[1], 0);
}

double length(const std::vector<double>& v) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  return std::sqrt(squares);
}

// A direction in which every parameter tensor has a share of about 1 or -1 in the derivative, or what moving it by its
// own length gives: a random step through millions of weights would leave most of them a share that nobody sees.
Values direction_of(const Values& at, const Values& gradients, std::uint64_t seed) {
  Values direction;
  const Rng rng(11, seed);
  for (std::size_t i = 0; i < at.size(); ++i) {
    std::vector<double> d(at[i].size());
    for (std::size_t j = 0; j < d.size(); ++j) d[j] = rng.normal(i, j);
    const double slope = length(gradients[i]);
    const double size = std::min(length(at[i]) > 0 ? length(at[i]) : 1.0, 1 / slope);
    const double random = size / length(d);
    const double along = ((rng.bits(1000 + i, 0) & 1u) != 0 ? size : -size) / slope;
    for (std::size_t j = 0; j < d.size(); ++j) d[j] = random * d[j] + along * gradients[i][j];
    direction.push_back(std::move(d));
  }
  return direction;
}

// The step is small for the kinks of two million relus: at 1e-5 those that change sides are 2 % of the derivative. What
// rounding in the loss leaves is below 1e-5. A forward pass takes seconds: in f64 all ops run their references.
TEST(ResNet50, GradientAgainstDifferencesInF64) {
  constexpr double kTolerance = 1e-4, kStep = 1e-8, kFault = 0.01;
  const Device cpu = cpu_device();
  Builder builder{.device = cpu, .seed = 2, .dtype = DType::f64};
  // With the usual initial gain of 0 the branches would have no gradient to check.
  const auto model = models::make_model("resnet50:zero_init=0", {.example = {3, 64, 64}, .classes = 10}, builder);
  const auto params = model->parameters();
  const Images images(cpu, 4, 64, 10, DType::f64);
  const auto loss = [&](Tape& tape) { return cross_entropy((*model)(tape.constant(images.x)), images.labels); };

  Values at, gradients;
  {
    Tape tape;
    const Gradients g = tape.backward(loss(tape));
    for (const Module::NamedParam& p : params) {
      ASSERT_TRUE(g.has(*p.param)) << p.name;
      at.push_back(to_vector<double>(p.param->value()));
      gradients.push_back(to_vector<double>(g.of(*p.param)));
      ASSERT_GT(length(gradients.back()), 0) << p.name;
    }
  }
  std::vector<bool> fault_found(params.size());
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Values direction = direction_of(at, gradients, seed);
    std::vector<double> shares;
    double analytic = 0;
    for (std::size_t i = 0; i < params.size(); ++i) {
      shares.push_back(0);
      for (std::size_t j = 0; j < direction[i].size(); ++j) shares[i] += gradients[i][j] * direction[i][j];
      analytic += shares[i];
    }
    const auto moved = [&](double by) {
      for (std::size_t i = 0; i < params.size(); ++i) {
        std::vector<double> values = at[i];
        for (std::size_t j = 0; j < values.size(); ++j) values[j] += by * direction[i][j];
        params[i].param->set(Tensor::from(cpu, params[i].param->meta().shape, values));
      }
      Tape tape(Tape::Mode::inference);  // records nothing; norms still train
      return loss(tape).value().item();
    };
    const double near = moved(kStep) - moved(-kStep), far = moved(2 * kStep) - moved(-2 * kStep);
    const double numeric = (8 * near - far) / (12 * kStep);
    const auto agrees = [&](double derivative) { return std::abs(numeric - derivative) <= kTolerance; };
    EXPECT_TRUE(agrees(analytic)) << "direction " << seed << ": backward " << analytic << ", differences " << numeric;
    for (std::size_t i = 0; i < params.size(); ++i) {
      fault_found[i] = fault_found[i] || !agrees(analytic + kFault * shares[i]);
    }
  }
  // The check can fail: it does when the gradient of any one tensor is off by one part in a hundred.
  for (std::size_t i = 0; i < params.size(); ++i) {
    EXPECT_TRUE(fault_found[i]) << params[i].name << ": nobody would see its gradient scaled by " << 1 + kFault;
  }
}

}  // namespace
}  // namespace lamina::nn
