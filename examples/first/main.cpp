// y = 2 x + 1 from eight points.
#include <cstdio>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/nn/layers.hpp"
#include "lamina/nn/optimizer.hpp"

using namespace lamina;

int main() {
  const Device cpu = cpu_device({.threads = 2});
  nn::Builder builder{.device = cpu, .seed = 1};
  nn::Linear layer(builder, 1, 1);
  const auto optimizer = nn::make_optimizer(layer.parameters(), {.name = "sgd"});
  const Tensor x = Tensor::from(cpu, {8, 1}, {-4.f, -3.f, -2.f, -1.f, 1.f, 2.f, 3.f, 4.f});
  const Tensor y = 2 * x + 1;
  for (int step = 0; step < 200; ++step) {
    Gradients gradients;
    {
      Tape tape;  // what was computed, held as an object
      const Var loss = mse(layer(tape.constant(x)), tape.constant(y));
      if (step % 40 == 0) std::printf("step %3d: loss %.6f\n", step, loss.value().item());
      gradients = tape.backward(loss);
    }                                  // dropped: its activations are free
    optimizer->step(gradients, 0.05);  // in place: nobody else holds the weights
  }
  Tape tape = Tape::evaluation();
  std::printf("f(10) = %.2f\n", layer(tape.constant(Tensor::from(cpu, {1, 1}, {10.f}))).value().item());
}
