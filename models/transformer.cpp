#include "lamina/models/transformer.hpp"

#include <cmath>

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/gelu/op.hpp"
#include "lamina/kernels/slice/op.hpp"

namespace lamina::models {

namespace {

using nn::Builder;

class Embed final : public nn::Module {
 public:
  Embed(Builder& builder, const TransformerOptions& o)
      : tokens_(builder, o.vocabulary, o.width), positions_(builder, o.context, o.width), dropout_(builder, o.dropout) {
    register_module("tokens", tokens_);
    register_module("positions", positions_);
  }
  Var forward(const Var& ids) const override {
    if (ids.shape().rank() != 2)
      fail<ShapeError>("transformer", "ids of shape {}; (B,T) wanted", to_string(ids.shape()));
    const std::int64_t time = ids.shape()[1];
    const std::int64_t context = positions_.table.meta().shape[0];
    if (time > context) fail<ShapeError>("transformer", "{} tokens; the model's context is {}", time, context);
    Var positions = ids.tape().param(positions_.table);
    if (time < context) positions = slice(positions, 0, 0, time);
    return dropout_(tokens_(ids) + positions);
  }

 private:
  nn::Embedding tokens_;
  nn::Embedding positions_;
  nn::Dropout dropout_;
};

class Block final : public nn::Module {
 public:
  Block(Builder& builder, const TransformerOptions& o, std::int64_t hidden, double output_std)
      : norm1_(builder, o.width),
        attention_(builder, o.width, o.heads, output_std),
        norm2_(builder, o.width),
        expand_(builder, o.width, hidden, {.std = 0.02}),
        contract_(builder, hidden, o.width, {.std = output_std}),
        dropout1_(builder, o.dropout),
        dropout2_(builder, o.dropout) {
    register_module("norm1", norm1_);
    register_module("attention", attention_);
    register_module("norm2", norm2_);
    register_module("expand", expand_);
    register_module("contract", contract_);
  }
  Var forward(const Var& x) const override {
    const Var y = x + dropout1_(attention_(norm1_(x)));
    return y + dropout2_(contract_(gelu(expand_(norm2_(y)))));
  }

 private:
  nn::LayerNorm norm1_;
  nn::CausalSelfAttention attention_;
  nn::LayerNorm norm2_;
  nn::Linear expand_, contract_;
  nn::Dropout dropout1_, dropout2_;
};

class Head final : public nn::Module {
 public:
  Head(Builder& builder, const TransformerOptions& o)
      : norm_(builder, o.width), linear_(builder, o.width, o.vocabulary, {.bias = false, .std = 0.02}) {
    register_module("norm", norm_);
    register_module("linear", linear_);
  }
  Var forward(const Var& x) const override { return linear_(norm_(x)); }

 private:
  nn::LayerNorm norm_;
  nn::Linear linear_;
};

}  // namespace

std::unique_ptr<nn::Sequential> make_transformer(Builder& builder, const TransformerOptions& options) {
  if (options.layers < 0) fail<ValueError>("transformer", "{} layers", options.layers);
  const std::int64_t hidden = options.hidden > 0 ? options.hidden : 4 * options.width;
  // Residual branches add up: each starts 1 / sqrt(2 layers) smaller.
  const double output_std = 0.02 / std::sqrt(2.0 * static_cast<double>(std::max<std::int64_t>(options.layers, 1)));
  auto model = std::make_unique<nn::Sequential>();
  model->emplace<Embed>(builder, options);
  for (std::int64_t i = 0; i < options.layers; ++i) model->emplace<Block>(builder, options, hidden, output_std);
  model->emplace<Head>(builder, options);
  return model;
}

}  // namespace lamina::models
