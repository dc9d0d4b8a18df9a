// What attention promises beyond what every op is checked for: queries that see nothing, and rows of their own.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lamina/kernels/attention/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> numbers(std::int64_t count, std::int64_t seed) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>((i + seed) * 7919 % 101 - 50) / 40);
  return v;
}

class AttentionOf : public ::testing::TestWithParam<const char*> {};

TEST_P(AttentionOf, AQueryThatSeesNothingIsZero) {
  // Query 1 of head 0 has scores of -inf only: q is -1 where every key is +inf.
  const Device device = cpu_device({.threads = 1, .kernels = GetParam()});
  std::vector<float> q = numbers(1 * 2 * 5 * 4, 1), k = numbers(1 * 2 * 6 * 4, 2);
  const std::vector<float> v = numbers(1 * 2 * 6 * 4, 3), dy = numbers(1 * 2 * 5 * 4, 4);
  for (std::int64_t i = 0; i < 5; ++i) q[static_cast<std::size_t>(i * 4)] = i == 1 ? -1.0f : 0.0f;
  const std::vector<float> finite_k = k;
  for (std::int64_t j = 0; j < 6; ++j) k[static_cast<std::size_t>(j * 4)] = std::numeric_limits<float>::max();
  for (std::size_t c = 0; c < 4; ++c) q[4 + c] = c == 0 ? -kInfinity : 0.0f;
  const Tensor tq = Tensor::from(device, {1, 2, 5, 4}, q), tk = Tensor::from(device, {1, 2, 6, 4}, k);
  const Tensor tv = Tensor::from(device, {1, 2, 6, 4}, v), tdy = Tensor::from(device, {1, 2, 5, 4}, dy);
  const Tensors out = attention_with_logsumexp(tq, tk, tv);
  const auto y = to_vector<float>(out[0]);
  for (std::size_t c = 0; c < 4; ++c) EXPECT_EQ(y[4 + c], 0.0f);
  for (const float x : y) EXPECT_TRUE(std::isfinite(x));
  const Tensors grad = apply<AttentionGrad>({}, {}, tdy, tq, tk, tv, out[0], out[1]);
  for (const float x : to_vector<float>(grad[2])) EXPECT_TRUE(std::isfinite(x));
  const auto dq = to_vector<float>(grad[0]);
  for (std::size_t c = 1; c < 4; ++c) EXPECT_EQ(dq[4 + c], 0.0f);
}

TEST_P(AttentionOf, CausalDoesNotLookAhead) {
  const Device device = cpu_device({.threads = 2, .kernels = GetParam()});
  const std::int64_t t = 150;
  const Tensor q = Tensor::from(device, {1, 1, t, 8}, numbers(t * 8, 1));
  std::vector<float> k = numbers(t * 8, 2), v = numbers(t * 8, 3);
  const auto clean = to_vector<float>(
      attention(q, Tensor::from(device, {1, 1, t, 8}, k), Tensor::from(device, {1, 1, t, 8}, v), {.causal = true}));
  for (const std::int64_t cut : {1, 31, 33, 128, 149}) {
    for (std::int64_t i = cut * 8; i < t * 8; ++i)
      k[static_cast<std::size_t>(i)] = v[static_cast<std::size_t>(i)] = 1e3f;
    const auto later = to_vector<float>(
        attention(q, Tensor::from(device, {1, 1, t, 8}, k), Tensor::from(device, {1, 1, t, 8}, v), {.causal = true}));
    for (std::int64_t i = 0; i < cut * 8; ++i)
      ASSERT_EQ(later[static_cast<std::size_t>(i)], clean[static_cast<std::size_t>(i)]) << cut;
    k = numbers(t * 8, 2);
    v = numbers(t * 8, 3);
  }
}

TEST_P(AttentionOf, AQueryDoesNotDependOnTheOthers) {
  const Device device = cpu_device({.threads = 2, .kernels = GetParam()});
  const Tensor q = Tensor::from(device, {1, 2, 200, 8}, numbers(3200, 1));
  const Tensor k = Tensor::from(device, {1, 2, 300, 8}, numbers(4800, 2));
  const Tensor v = Tensor::from(device, {1, 2, 300, 8}, numbers(4800, 3));
  const auto all = to_vector<float>(attention(q, k, v).slice(2, 57, 90));
  EXPECT_EQ(to_vector<float>(attention(q.slice(2, 57, 90), k, v)), all);
}

INSTANTIATE_TEST_SUITE_P(, AttentionOf,
                         ::testing::Values("", "attention.cpu.fused.f32.baseline,attention_grad.cpu.fused.f32.baseline",
                                           "attention.cpu.reference,attention_grad.cpu.reference"),
                         [](const auto& info) { return "Kernels" + std::to_string(info.index); });

}  // namespace
}  // namespace lamina
