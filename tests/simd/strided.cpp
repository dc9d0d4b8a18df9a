// Elementwise kernels on transposed, sliced and broadcast operands give the bits they give on dense copies of them, for
// any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/maximum/op.hpp"
#include "lamina/kernels/sub/op.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {

namespace {

using Random = std::mt19937;

std::int64_t draw(Random& random, std::int64_t lo, std::int64_t hi) {
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
}

// A view of `shape` on other storage: dims in another order in memory, some with larger steps, some repeated.
Tensor strided(Random& random, const Device& device, const Shape& shape, DType dtype) {
  const int rank = shape.rank();
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = i;
  if (draw(random, 0, 2) != 0) std::shuffle(order.begin(), order.end(), random);
  std::vector<std::int64_t> memory, steps, inverse(static_cast<std::size_t>(rank));
  for (std::size_t d = 0; d < order.size(); ++d) {
    const std::int64_t extent = shape[order[d]];
    const bool repeated = draw(random, 0, 3) == 0;
    const std::int64_t step = repeated || draw(random, 0, 3) != 0 ? 1 : draw(random, 2, 3);
    memory.push_back(repeated ? 1 : extent * step + draw(random, 0, 1));
    steps.push_back(step);
    inverse[static_cast<std::size_t>(order[d])] = static_cast<std::int64_t>(d);
  }
  const Shape stored{std::span<const std::int64_t>(memory)};
  std::vector<float> values(static_cast<std::size_t>(stored.count()));
  for (float& v : values) v = static_cast<float>(draw(random, -128, 128)) / 16;
  Tensor t = Tensor::from<float>(device, stored, values);
  if (dtype != DType::f32) t = cast(t, dtype);
  for (int d = 0; d < rank; ++d) {
    const auto at = static_cast<std::size_t>(d);
    const std::int64_t extent = shape[order[at]];
    if (memory[at] == 1) continue;
    const std::int64_t lo = memory[at] - extent * steps[at];
    t = t.slice(d, lo, lo + (extent - 1) * steps[at] + 1, steps[at]);
  }
  std::vector<int> back(inverse.begin(), inverse.end());
  return t.permute(back).expand(shape);
}

template <Op O>
void check(Random& random, const Device& device, const typename O::Attrs& attrs, const Shape& shape, DType dtype,
           std::size_t operands) {
  static ThreadPool one(1), three(3);
  std::vector<Tensor> in, dense;
  for (std::size_t i = 0; i < operands; ++i) {
    in.push_back(strided(random, device, shape, dtype));
    dense.push_back(copy(in.back()));
  }
  const Variant* variant = nullptr;
  auto launch = [&](const std::vector<Tensor>& operands_in, Executor& executor) {
    Tensor out = Tensor::empty(device, shape, dtype);
    std::vector<Operand> ins;
    for (const Tensor& t : operands_in) ins.push_back({t.raw(), &t.layout(), t.dtype()});
    const std::array outs{Operand{out.raw(), &out.layout(), out.dtype()}};
    if (!variant->supports(&attrs, ins, outs)) return std::vector<std::byte>();
    variant->launch(&attrs, ins, outs, executor, device.queue(), device.state()->pool);
    return std::vector<std::byte>(out.raw(), out.raw() + out.meta().bytes());
  };
  for (const Variant* v : device.state()->kernels->entry(OpId<O>::value).usable) {
    if (v->name.ends_with("reference")) continue;
    variant = v;
    const auto want = launch(dense, one);
    EXPECT_TRUE(launch(in, one) == want) << v->name << " " << to_string(shape);
    EXPECT_TRUE(launch(in, three) == want) << v->name << " " << to_string(shape) << ", three threads";
  }
}

TEST(Elementwise, StridedOperands) {
  const Device device = cpu_device({.threads = 1});
  Random random(20);
  for (int round = 0; round < 150; ++round) {
    const int rank = static_cast<int>(draw(random, 1, 4));
    std::vector<std::int64_t> dims;
    std::int64_t room = round % 10 == 0 ? 200000 : 6000;
    for (int i = 0; i < rank; ++i) {
      const std::int64_t most = i + 1 == rank ? room : std::min<std::int64_t>(room, draw(random, 0, 1) == 0 ? 5 : 300);
      dims.push_back(draw(random, 1, std::max<std::int64_t>(1, most)));
      room /= dims.back();
    }
    std::shuffle(dims.begin(), dims.end(), random);
    const Shape shape{std::span<const std::int64_t>(dims)};
    const DType dtype = round % 3 == 0 ? DType::bf16 : DType::f32;
    SCOPED_TRACE(round);
    check<Sub>(random, device, {}, shape, dtype, 2);
    check<MaximumGrad>(random, device, {.minimum = false, .second = true}, shape, dtype, 3);
    if (HasFailure()) return;
  }
}

}  // namespace

}  // namespace lamina
