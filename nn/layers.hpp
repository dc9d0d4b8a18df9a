// Layers. Each is a Module; shapes are given with every class, letters: N batch, C channels, H W image, T time, D
// width.
#pragma once

#include <optional>

#include "lamina/kernels/conv2d/op.hpp"
#include "lamina/kernels/linear/op.hpp"
#include "lamina/nn/module.hpp"

namespace lamina::nn {

/// (..., in) -> (..., out): act(x W^T + b). W (out, in) ~ He normal (or N(0, std^2) when `std` > 0), b = 0.
class Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    Activation activation = Activation::none;
    double std = 0;  ///< of the initial weights; 0: He for relu, sqrt(1 / in) else
  };
  Linear(Builder& builder, std::int64_t in, std::int64_t out, Options options);
  Linear(Builder& builder, std::int64_t in, std::int64_t out) : Linear(builder, in, out, Options{}) {}
  Var forward(const Var& x) const override;

  Param weight;
  std::optional<Param> bias;

 private:
  Activation activation_;
};

/// (N, in, H, W) -> (N, out, H', W'). Weight (out, in / groups, k, k) ~ He normal.
class Conv2d : public Module {
 public:
  struct Options {
    std::int64_t kernel = 3;
    std::int64_t stride = 1;
    std::int64_t padding = 0;
    std::int64_t dilation = 1;
    std::int64_t groups = 1;
    bool bias = false;
  };
  Conv2d(Builder& builder, std::int64_t in, std::int64_t out, Options options);
  Var forward(const Var& x) const override;

  Param weight;
  std::optional<Param> bias;

 private:
  Conv2d::Options options_;
};

/// (N, C, ...) normalised per channel. Training: by the batch's mean and biased variance; the running statistics move
/// toward the batch's mean and unbiased variance by `momentum`, once a step. Evaluation: by the running statistics.
class BatchNorm : public Module {
 public:
  struct Options {
    double epsilon = 1e-5;
    double momentum = 0.1;
    double initial_gain = 1;
  };
  BatchNorm(Builder& builder, std::int64_t channels, Options options);
  BatchNorm(Builder& builder, std::int64_t channels) : BatchNorm(builder, channels, Options{}) {}
  Var forward(const Var& x) const override;

  Param gain, bias;
  mutable Param running_mean, running_variance;

 private:
  Options options_;
};

/// (..., D) normalised over the last dim.
class LayerNorm : public Module {
 public:
  LayerNorm(Builder& builder, std::int64_t width, double epsilon = 1e-5);
  Var forward(const Var& x) const override;

  Param gain, bias;

 private:
  double epsilon_;
};

/// ids (...) i64 -> (..., D). Table (V, D) ~ N(0, std^2).
class Embedding : public Module {
 public:
  Embedding(Builder& builder, std::int64_t vocabulary, std::int64_t width, double std = 0.02);
  Var forward(const Var& ids) const override;

  Param table;
};

/// Elementwise, in training: element e of example n of the step is kept with probability 1 - rate.
class Dropout : public Module {
 public:
  Dropout(Builder& builder, double rate);
  Var forward(const Var& x) const override;

 private:
  double rate_;
  std::uint64_t layer_;
};

class Relu : public Module {
 public:
  Var forward(const Var& x) const override;
};
class Gelu : public Module {
 public:
  Var forward(const Var& x) const override;
};

/// (N, C, H, W) -> (N, C, H', W').
class MaxPool2d : public Module {
 public:
  MaxPool2d(std::int64_t kernel, std::int64_t stride, std::int64_t padding)
      : kernel_(kernel), stride_(stride), padding_(padding) {}
  Var forward(const Var& x) const override;

 private:
  std::int64_t kernel_, stride_, padding_;
};

/// (N, C, H, W) -> (N, C).
class GlobalAvgPool : public Module {
 public:
  Var forward(const Var& x) const override;
};

/// (N, ...) -> (N, product).
class Flatten : public Module {
 public:
  Var forward(const Var& x) const override;
};

}  // namespace lamina::nn
