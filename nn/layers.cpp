#include "lamina/nn/layers.hpp"

#include "lamina/core/rng.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/nn/init.hpp"

namespace lamina::nn {

namespace {

void require_positive(std::string_view layer, std::string_view what, std::int64_t value) {
  if (value < 1) fail<ValueError>(layer, "{} is {}; at least 1", what, value);
}

}  // namespace

// ---- Linear ----

Linear::Linear(Builder& builder, std::int64_t in, std::int64_t out, Options options)
    : weight([&] {
        require_positive("linear", "input width", in);
        require_positive("linear", "output width", out);
        const bool he = options.activation == Activation::relu;
        const double std = options.std > 0 ? options.std : he_std(in) * (he ? 1 : std::sqrt(0.5));
        return init_normal(builder, {out, in}, std, builder.next_layer());
      }()),
      activation_(options.activation) {
  register_param("weight", weight);
  if (options.bias) {
    bias.emplace(init_constant(builder, {out}, 0));
    register_param("bias", *bias, false);
  }
}

Var Linear::forward(const Var& x) const {
  Tape& tape = x.tape();
  return bias ? linear(x, tape.param(weight), tape.param(*bias), activation_)
              : linear(x, tape.param(weight), activation_);
}

// ---- Conv2d ----

Conv2d::Conv2d(Builder& builder, std::int64_t in, std::int64_t out, Options options)
    : weight([&] {
        require_positive("conv2d", "input channels", in);
        require_positive("conv2d", "output channels", out);
        require_positive("conv2d", "groups", options.groups);
        require_positive("conv2d", "kernel", options.kernel);
        if (in % options.groups != 0)
          fail<ValueError>("conv2d", "{} groups do not divide {} channels", options.groups, in);
        const std::int64_t fan_in = in / options.groups * options.kernel * options.kernel;
        return init_normal(builder, {out, in / options.groups, options.kernel, options.kernel}, he_std(fan_in),
                           builder.next_layer());
      }()),
      options_(options) {
  register_param("weight", weight);
  if (options.bias) {
    bias.emplace(init_constant(builder, {out}, 0));
    register_param("bias", *bias, false);
  }
}

Var Conv2d::forward(const Var& x) const {
  Tape& tape = x.tape();
  const Conv2dAttrs attrs{.stride = {options_.stride, options_.stride},
                          .padding = {options_.padding, options_.padding},
                          .dilation = {options_.dilation, options_.dilation},
                          .groups = options_.groups};
  return bias ? conv2d(x, tape.param(weight), tape.param(*bias), attrs) : conv2d(x, tape.param(weight), attrs);
}

// ---- BatchNorm ----

BatchNorm::BatchNorm(Builder& builder, std::int64_t channels, Options options)
    : gain((require_positive("batch_norm", "channels", channels),
            init_constant(builder, {channels}, options.initial_gain))),
      bias(init_constant(builder, {channels}, 0)),
      running_mean(init_constant(builder, {channels}, 0)),
      running_variance(init_constant(builder, {channels}, 1)),
      options_(options) {
  register_param("gain", gain, false);
  register_param("bias", bias, false);
  register_buffer("running_mean", running_mean);
  register_buffer("running_variance", running_variance);
}

Var BatchNorm::forward(const Var& x) const {
  Tape& tape = x.tape();
  if (!tape.context().training) {
    return batch_norm_inference(x, tape.param(gain), tape.param(bias), running_mean.value(), running_variance.value(),
                                {.epsilon = options_.epsilon});
  }
  const Vars out = batch_norm(x, tape.param(gain), tape.param(bias), {.epsilon = options_.epsilon});
  if (!tape.replaying()) {
    const double per_channel = static_cast<double>(x.shape().count()) / static_cast<double>(x.shape()[1]);
    const double unbiased = per_channel / (per_channel - 1);
    Param* stats[] = {&running_mean, &running_variance};
    update(stats, [&](std::span<Tensor> values) {
      const double keep = 1 - options_.momentum;
      values[0] = add(scale(values[0], keep), scale(out[1].value(), options_.momentum));
      values[1] = add(scale(values[1], keep), scale(out[2].value(), options_.momentum * unbiased));
    });
  }
  return out[0];
}

// ---- LayerNorm ----

LayerNorm::LayerNorm(Builder& builder, std::int64_t width, double epsilon)
    : gain((require_positive("layer_norm", "width", width), init_constant(builder, {width}, 1))),
      bias(init_constant(builder, {width}, 0)),
      epsilon_(epsilon) {
  register_param("gain", gain, false);
  register_param("bias", bias, false);
}

Var LayerNorm::forward(const Var& x) const {
  return layer_norm(x, x.tape().param(gain), x.tape().param(bias), {.epsilon = epsilon_});
}

// ---- Embedding ----

Embedding::Embedding(Builder& builder, std::int64_t vocabulary, std::int64_t width, double std)
    : table([&] {
        require_positive("embedding", "vocabulary", vocabulary);
        require_positive("embedding", "width", width);
        return init_normal(builder, {vocabulary, width}, std, builder.next_layer());
      }()) {
  register_param("table", table);
}

Var Embedding::forward(const Var& ids) const { return embedding(ids, ids.tape().param(table)); }

// ---- the rest ----

Dropout::Dropout(Builder& builder, double rate) : rate_(rate), layer_(builder.next_layer()) {
  if (!(rate >= 0 && rate < 1)) fail<ValueError>("dropout", "rate {} is outside [0, 1)", rate);
}

Var Dropout::forward(const Var& x) const {
  const RunContext& run = x.tape().context();
  if (!run.training || rate_ == 0) return x;
  return dropout(x, {.rate = rate_, .rng = Rng(run.seed, layer_, run.step), .first_example = run.first_example});
}

Var Relu::forward(const Var& x) const { return relu(x); }
Var Gelu::forward(const Var& x) const { return gelu(x); }

Var MaxPool2d::forward(const Var& x) const {
  return max_pool2d(x, {.kernel = {kernel_, kernel_}, .stride = {stride_, stride_}, .padding = {padding_, padding_}});
}

Var GlobalAvgPool::forward(const Var& x) const { return mean(x, {2, 3}); }

Var Flatten::forward(const Var& x) const {
  const std::int64_t rows = x.shape().rank() > 0 ? x.shape()[0] : 1;
  return reshape(x, {rows, rows == 0 ? 0 : x.shape().count() / rows});
}

}  // namespace lamina::nn
