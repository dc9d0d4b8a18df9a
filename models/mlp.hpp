// Multilayer perceptron: linear layers with relu between, any widths.
#pragma once

#include "lamina/nn/layers.hpp"

namespace lamina::models {

struct MlpOptions {
  std::int64_t inputs = 784;                      ///< elements of an example, flattened
  std::vector<std::int64_t> widths = {256, 256};  ///< of the hidden layers
  std::int64_t outputs = 10;
  double dropout = 0;
};

/// (N, ...) -> (N, outputs). Blocks: one a linear layer (with its activation and dropout).
std::unique_ptr<nn::Sequential> make_mlp(nn::Builder& builder, const MlpOptions& options);

}  // namespace lamina::models
