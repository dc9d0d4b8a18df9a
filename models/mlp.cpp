#include "lamina/models/mlp.hpp"

namespace lamina::models {

namespace {

class Layer final : public nn::Module {
 public:
  Layer(nn::Builder& builder, std::int64_t in, std::int64_t out, bool hidden, double dropout)
      : linear_(builder, in, out, {.activation = hidden ? Activation::relu : Activation::none}),
        dropout_(builder, hidden ? dropout : 0) {
    register_module("linear", linear_);
  }
  Var forward(const Var& x) const override { return dropout_(linear_(x.shape().rank() == 2 ? x : nn::Flatten()(x))); }

 private:
  nn::Linear linear_;
  nn::Dropout dropout_;
};

}  // namespace

std::unique_ptr<nn::Sequential> make_mlp(nn::Builder& builder, const MlpOptions& options) {
  auto model = std::make_unique<nn::Sequential>();
  std::int64_t in = options.inputs;
  for (const std::int64_t width : options.widths) {
    model->emplace<Layer>(builder, in, width, true, options.dropout);
    in = width;
  }
  model->emplace<Layer>(builder, in, options.outputs, false, 0);
  return model;
}

}  // namespace lamina::models
