// Self-attention for sequence models.
#pragma once

#include "lamina/nn/layers.hpp"

namespace lamina::nn {

/// (B, T, D) -> (B, T, D): multi-head causal self-attention, scaled by 1 / sqrt(D / heads) (Vaswani et al. 2017).
class CausalSelfAttention : public Module {
 public:
  /// `output_std`: of the output projection's initial weights; deep residual stacks want it small.
  CausalSelfAttention(Builder& builder, std::int64_t width, std::int64_t heads, double output_std);
  Var forward(const Var& x) const override;

  Linear qkv;
  Linear output;

 private:
  std::int64_t heads_;
};

}  // namespace lamina::nn
