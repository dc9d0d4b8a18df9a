// Decoder language model: pre-norm blocks of causal attention and a gelu MLP, learned positions (Radford et al. 2019).
#pragma once

#include "lamina/nn/attention.hpp"

namespace lamina::models {

struct TransformerOptions {
  std::int64_t vocabulary = 256;
  std::int64_t layers = 4;
  std::int64_t width = 128;
  std::int64_t heads = 4;
  std::int64_t hidden = 0;     ///< width of the MLP; 0: 4 width
  std::int64_t context = 128;  ///< largest T
  double dropout = 0;
};

/// ids (B, T) i64, T <= context -> logits (B, T, vocabulary). Blocks: embedding, layers, head.
std::unique_ptr<nn::Sequential> make_transformer(nn::Builder& builder, const TransformerOptions& options);

}  // namespace lamina::models
