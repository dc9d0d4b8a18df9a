// Training inside another program: an own data set, an own module, an own loop.
#include <cmath>
#include <cstdio>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/models/data/loader.hpp"
#include "lamina/nn/layers.hpp"
#include "lamina/nn/optimizer.hpp"

using namespace lamina;

// Points (x, y); the label says whether they are inside the unit circle.
struct Circle final : Dataset {
  Circle() : Dataset({.name = "circle", .size = 2048, .input = {{2}}, .label = {{}, DType::i64}, .classes = 2}) {}
  void read_example(const Example& e, std::span<std::byte> input, std::span<std::byte> label) const override {
    const Rng rng(7);
    auto point = elements<float>(input);
    for (std::size_t i = 0; i < 2; ++i) point[i] = 3 * rng.uniform(static_cast<std::uint64_t>(e.index), i) - 1.5f;
    elements<std::int64_t>(label)[0] = std::hypot(point[0], point[1]) < 1;
  }
};

struct Net final : nn::Module {
  explicit Net(nn::Builder& b) : hidden(b, 2, 32, {.activation = Activation::tanh}), out(b, 32, 2) {
    register_module("hidden", hidden);
    register_module("out", out);
  }
  Var forward(const Var& x) const override { return out(hidden(x)); }
  nn::Linear hidden, out;
};

int main() {
  const Device cpu = cpu_device({.threads = 1});
  nn::Builder builder{.device = cpu, .seed = 1};
  Net net(builder);
  const auto optimizer = nn::make_optimizer(net.parameters(), {.name = "adam"});
  Loader loader(std::make_shared<Circle>(), cpu, {.batch = 128, .seed = 1});
  double loss = 0;
  for (int step = 0; step < 400; ++step) {
    const Batch batch = loader.next();
    Gradients gradients;
    {
      Tape tape;
      const Var l = cross_entropy(net(tape.constant(batch.inputs)), batch.labels);
      loss = l.value().item();
      gradients = tape.backward(l);
    }  // the tape is gone: the update below writes in place
    optimizer->step(gradients, 0.01);
  }
  std::printf("loss %.4f after 400 steps\n", loss);
  return loss < 0.2 ? 0 : 1;
}
