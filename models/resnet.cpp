#include "lamina/models/resnet.hpp"

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/relu/op.hpp"

namespace lamina::models {

namespace {

using nn::BatchNorm;
using nn::Builder;
using nn::Conv2d;

// Convolution without bias, then batch norm, then relu if wanted.
class ConvNorm final : public nn::Module {
 public:
  ConvNorm(Builder& builder, std::int64_t in, std::int64_t out, Conv2d::Options options, bool activate, double gain = 1)
      : conv_(builder, in, out, options), norm_(builder, out, {.initial_gain = gain}), activate_(activate) {
    register_module("conv", conv_);
    register_module("norm", norm_);
  }
  Var forward(const Var& x) const override {
    const Var y = norm_(conv_(x));
    return activate_ ? relu(y) : y;
  }

 private:
  Conv2d conv_;
  BatchNorm norm_;
  bool activate_;
};

Conv2d::Options conv3(std::int64_t stride) { return {.kernel = 3, .stride = stride, .padding = 1}; }
Conv2d::Options conv1(std::int64_t stride) { return {.kernel = 1, .stride = stride}; }

// relu(branch(x) + shortcut(x)).
class Residual final : public nn::Module {
 public:
  static std::unique_ptr<Residual> basic(Builder& builder, std::int64_t in, std::int64_t out, std::int64_t stride,
                                         double last_gain) {
    auto block = std::make_unique<Residual>();
    block->branch_.emplace<ConvNorm>(builder, in, out, conv3(stride), true);
    block->branch_.emplace<ConvNorm>(builder, out, out, conv3(1), false, last_gain);
    block->finish(builder, in, out, stride);
    return block;
  }
  static std::unique_ptr<Residual> bottleneck(Builder& builder, std::int64_t in, std::int64_t middle,
                                              std::int64_t stride, double last_gain) {
    auto block = std::make_unique<Residual>();
    block->branch_.emplace<ConvNorm>(builder, in, middle, conv1(1), true);
    block->branch_.emplace<ConvNorm>(builder, middle, middle, conv3(stride), true);
    block->branch_.emplace<ConvNorm>(builder, middle, 4 * middle, conv1(1), false, last_gain);
    block->finish(builder, in, 4 * middle, stride);
    return block;
  }
  Var forward(const Var& x) const override { return relu(branch_(x) + (shortcut_ ? (*shortcut_)(x) : x)); }

 private:
  void finish(Builder& builder, std::int64_t in, std::int64_t out, std::int64_t stride) {
    register_module("branch", branch_);
    if (in == out && stride == 1) return;
    shortcut_ = std::make_unique<ConvNorm>(builder, in, out, conv1(stride), false);
    register_module("shortcut", *shortcut_);
  }

  nn::Sequential branch_;
  std::unique_ptr<ConvNorm> shortcut_;
};

class Stem final : public nn::Module {
 public:
  Stem(Builder& builder, std::int64_t channels)
      : conv_(builder, channels, 64, {.kernel = 7, .stride = 2, .padding = 3}, true), pool_(3, 2, 1) {
    register_module("conv", conv_);
  }
  Var forward(const Var& x) const override { return pool_(conv_(x)); }

 private:
  ConvNorm conv_;
  nn::MaxPool2d pool_;
};

class Head final : public nn::Module {
 public:
  Head(Builder& builder, std::int64_t channels, std::int64_t outputs) : linear_(builder, channels, outputs) {
    register_module("linear", linear_);
  }
  Var forward(const Var& x) const override { return linear_(nn::GlobalAvgPool()(x)); }

 private:
  nn::Linear linear_;
};

}  // namespace

std::unique_ptr<nn::Sequential> make_resnet(Builder& builder, const CifarResNetOptions& options) {
  if (options.depth < 8 || (options.depth - 2) % 6 != 0) {
    fail<ValueError>("resnet", "depth {} is not 6 n + 2; known: 8, 20, 32, 44, 56", options.depth);
  }
  auto model = std::make_unique<nn::Sequential>();
  model->emplace<ConvNorm>(builder, options.channels, options.width, conv3(1), true);
  std::int64_t in = options.width;
  for (int group = 0; group < 3; ++group) {
    const std::int64_t out = options.width << group;
    for (std::int64_t i = 0; i < (options.depth - 2) / 6; ++i) {
      model->add(Residual::basic(builder, in, out, group > 0 && i == 0 ? 2 : 1, 1));
      in = out;
    }
  }
  model->emplace<Head>(builder, in, options.outputs);
  return model;
}

std::unique_ptr<nn::Sequential> make_resnet(Builder& builder, const ImageNetResNetOptions& options) {
  std::vector<std::int64_t> counts;
  if (options.depth == 18) counts = {2, 2, 2, 2};
  if (options.depth == 34 || options.depth == 50) counts = {3, 4, 6, 3};
  if (counts.empty()) fail<ValueError>("resnet", "depth {} is unknown; known: 18, 34, 50", options.depth);
  const bool bottleneck = options.depth >= 50;
  const double gain = options.zero_init ? 0 : 1;
  auto model = std::make_unique<nn::Sequential>();
  model->emplace<Stem>(builder, options.channels);
  std::int64_t in = 64;
  for (std::size_t group = 0; group < counts.size(); ++group) {
    const std::int64_t width = std::int64_t{64} << group;
    for (std::int64_t i = 0; i < counts[group]; ++i) {
      const std::int64_t stride = group > 0 && i == 0 ? 2 : 1;
      model->add(bottleneck ? Residual::bottleneck(builder, in, width, stride, gain)
                            : Residual::basic(builder, in, width, stride, gain));
      in = bottleneck ? 4 * width : width;
    }
  }
  model->emplace<Head>(builder, in, options.outputs);
  return model;
}

}  // namespace lamina::models
