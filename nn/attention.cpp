#include "lamina/nn/attention.hpp"

#include "lamina/kernels/attention/op.hpp"
#include "lamina/kernels/permute/op.hpp"
#include "lamina/kernels/slice/op.hpp"

namespace lamina::nn {

CausalSelfAttention::CausalSelfAttention(Builder& builder, std::int64_t width, std::int64_t heads, double output_std)
    : qkv(builder, width, 3 * width, {.std = 0.02}), output(builder, width, width, {.std = output_std}), heads_(heads) {
  if (heads < 1 || width % heads != 0) fail<ValueError>("attention", "{} heads do not divide width {}", heads, width);
  register_module("qkv", qkv);
  register_module("output", output);
}

Var CausalSelfAttention::forward(const Var& x) const {
  if (x.shape().rank() != 3) fail<ShapeError>("attention", "input of shape {}; (B,T,D) wanted", to_string(x.shape()));
  const std::int64_t batch = x.shape()[0], time = x.shape()[1], width = x.shape()[2];
  // (B, T, 3, H, D/H) -> (3, B, H, T, D/H): one copy serves q, k and v.
  const Var split = permute(reshape(qkv(x), {batch, time, 3, heads_, width / heads_}), {2, 0, 3, 1, 4});
  auto part = [&](int i) { return reshape(slice(split, 0, i, i + 1), {batch, heads_, time, width / heads_}); };
  const Var y = attention(part(0), part(1), part(2), {.causal = true});
  return output(reshape(permute(y, {0, 2, 1, 3}), {batch, time, width}));
}

}  // namespace lamina::nn
