#include "lamina/nn/layers.hpp"

#include <gtest/gtest.h>

#include "lamina/autograd/check.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/kernels/shape_device.hpp"
#include "lamina/models/registry.hpp"

namespace lamina::nn {
namespace {

Tensor normal(const Device& d, const Shape& shape, DType dtype = DType::f32, std::uint64_t seed = 1) {
  const Rng rng(seed);
  std::vector<float> v(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(rng.normal(0, i));
  const Tensor t = Tensor::from(d, shape, v);
  return dtype == DType::f32 ? t : cast(t, dtype);
}

TEST(BatchNormLayer, RunningStatisticsAreTheUnbiasedOnes) {
  const Device cpu = cpu_device({.threads = 1});
  Builder b{.device = cpu};
  BatchNorm norm(b, 1, {.momentum = 0.1});
  Tape tape;
  norm(tape.constant(Tensor::from(cpu, {4, 1}, {1.0f, 2.0f, 3.0f, 6.0f})));
  EXPECT_NEAR(to_vector<float>(norm.running_variance.value())[0], 1.3667, 1e-4);
  EXPECT_NEAR(to_vector<float>(norm.running_mean.value())[0], 0.3, 1e-6);
}

TEST(BatchNormLayer, OneValueAChannelThrowsAndLeavesTheStatistics) {
  const Device cpu = cpu_device({.threads = 1});
  Builder b{.device = cpu};
  BatchNorm norm(b, 2);
  Tape tape;
  EXPECT_THROW(norm(tape.constant(normal(cpu, {1, 2, 1, 1}))), ShapeError);
  EXPECT_EQ(to_vector<float>(norm.running_variance.value()), (std::vector<float>{1, 1}));
}

TEST(BatchNormLayer, RecomputeUpdatesOnce) {
  const Device cpu = cpu_device({.threads = 1});
  Builder b{.device = cpu};
  BatchNorm plain(b, 3), again(b, 3);
  const Tensor x = normal(cpu, {8, 3});
  for (int step = 0; step < 3; ++step) {
    Tape t1, t2;
    const Var in[] = {t2.input(x)};
    t1.backward(sum(plain(t1.input(x))));
    const Vars y = recompute(in, [&](Tape&, std::span<const Var> v) -> Vars { return {again(v[0])}; });
    t2.backward(sum(y[0]));
  }
  EXPECT_EQ(to_vector<float>(plain.running_mean.value()), to_vector<float>(again.running_mean.value()));
  EXPECT_EQ(plain.running_mean.version(), again.running_mean.version());
}

TEST(DropoutLayer, MaskIsKeyedByExampleAndStep) {
  const Device cpu = cpu_device({.threads = 1});
  Builder b{.device = cpu};
  const Dropout dropout(b, 0.5);
  const Tensor x = Tensor::from(cpu, {6, 50}, std::vector<float>(300, 1.0f));
  auto run = [&](std::int64_t from, std::int64_t to, std::uint64_t step) {
    Tape tape(Tape::Mode::record, {.seed = 3, .step = step, .first_example = from});
    return to_vector<float>(dropout(tape.constant(contiguous(x.slice(0, from, to)))).value());
  };
  const auto whole = run(0, 6, 1);
  auto parts = run(0, 2, 1);
  const auto rest = run(2, 6, 1);
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, parts);  // micro-batches draw what the joined batch draws
  EXPECT_NE(whole, run(0, 6, 2));
  Tape eval = Tape::evaluation();
  EXPECT_EQ(to_vector<float>(dropout(eval.constant(x)).value()), to_vector<float>(x));
}

TEST(Models, ParameterNamesAreStable) {
  Builder b{.device = shape_device()};
  const auto model = models::make_model("resnet8", {.example = {1, 28, 28}}, b);
  const auto params = model->parameters();
  EXPECT_EQ(params.front().name, "0.conv.weight");
  EXPECT_EQ(params.back().name, "4.linear.bias");
  EXPECT_EQ(model->size(), 5u);
}

TEST(Models, KnownParameterCountsAndCosts) {
  struct Known {
    const char* spec;
    Shape example;
    std::int64_t classes;
    std::int64_t parameters;
    double forward_gmac;
  };
  // Parameter counts of the published models; MACs of ResNet-50 at 224 px (v1.5): 4.09 G.
  for (const Known& k :
       {Known{"resnet50", {3, 224, 224}, 1000, 25557032, 4.09}, Known{"resnet18", {3, 224, 224}, 1000, 11689512, 1.81},
        Known{"resnet34", {3, 224, 224}, 1000, 21797672, 3.66},
        Known{"mlp:widths=4096x8", {3072}, 10, 130097162, 0.13006}}) {
    const Device shape = shape_device();
    Builder b{.device = shape};
    const auto model = models::make_model(k.spec, {.example = k.example, .classes = k.classes}, b);
    EXPECT_EQ(parameter_count(*model), k.parameters) << k.spec;
    Tape tape;
    (*model)(tape.constant(Tensor::empty(shape, k.example.inserted(0, 1))));
    (void)tape;
    // Norms, activations and biases are counted too: a few percent.
    EXPECT_NEAR(static_cast<double>(shape.counts().flops) / 2e9, k.forward_gmac, 0.03 * k.forward_gmac) << k.spec;
  }
}

TEST(Models, GradientsOfSmallModels) {
  const Device cpu = cpu_device({.threads = 1});
  for (const char* spec : {"mlp:widths=8x2", "resnet8:width=2"}) {
    Builder b{.device = cpu, .seed = 1, .dtype = DType::f64};
    const Shape example = {1, 6, 6};
    const auto model = models::make_model(spec, {.example = example, .classes = 3}, b);
    const Tensor x = normal(cpu, {4, 1, 6, 6}, DType::f64);
    const Tensor labels = Tensor::from(cpu, {4}, {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{1}});
    const auto params = values_of(model->parameters());
    const auto check = check_gradients([&](Tape& t) { return cross_entropy((*model)(t.constant(x)), labels); }, params);
    EXPECT_LT(check.worst, 1e-6) << spec << ": " << check.where;
  }
}

TEST(Models, GradientsOfATransformer) {
  const Device cpu = cpu_device({.threads = 1});
  Builder b{.device = cpu, .seed = 1, .dtype = DType::f64};
  const auto model = models::make_model("transformer:layers=2,width=8,heads=2,context=6",
                                        {.example = {6}, .classes = 11, .tokens = true}, b);
  std::vector<std::int64_t> ids(12), labels(12);
  for (std::size_t i = 0; i < 12; ++i)
    ids[i] = static_cast<std::int64_t>(i * 5 % 11), labels[i] = static_cast<std::int64_t>(i * 7 % 11);
  const Tensor x = Tensor::from(cpu, {2, 6}, ids), y = Tensor::from(cpu, {2, 6}, labels);
  const auto params = values_of(model->parameters());
  const auto check = check_gradients([&](Tape& t) { return cross_entropy((*model)(t.constant(x)), y); }, params);
  EXPECT_LT(check.worst, 1e-6) << check.where;
}

TEST(Models, WrongNamesSayWhatIsKnown) {
  Builder b{.device = shape_device()};
  EXPECT_THROW(models::make_model("resnet9", {.example = {3, 32, 32}}, b), ValueError);
  EXPECT_THROW(models::make_model("mlp:width=3", {.example = {3}}, b), ValueError);
  EXPECT_THROW(models::make_model("resnet8", {.example = {3}}, b), ValueError);
  EXPECT_THROW(models::make_model("transformer:heads=3", {.example = {8}, .tokens = true}, b), ValueError);
}

}  // namespace
}  // namespace lamina::nn
