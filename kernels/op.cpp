#include "lamina/kernels/op.hpp"

namespace lamina {

Cost stream_cost(std::int64_t flops, MetasIn in, MetasIn out) {
  Cost cost{.flops = flops};
  for (const Meta& m : in) cost.bytes_read += m.bytes();
  for (const Meta& m : out) cost.bytes_written += m.bytes();
  return cost;
}

const Tensor& Saved::undefined() noexcept {
  static const Tensor none;
  return none;
}

void no_gradient(std::string_view op) { fail<TapeError>(op, "has no gradient"); }

}  // namespace lamina
