#include "lamina/kernels/cpu/reduce.hpp"

namespace lamina {

ReducePlan reduce_plan(const Shape& in, std::uint32_t axes) {
  struct Run {
    std::int64_t extent;
    std::int64_t stride;
    bool reduced;
  };
  Run runs[kMaxRank];  // innermost first
  int count = 0;
  std::int64_t stride = 1;
  for (int i = in.rank() - 1; i >= 0; --i) {
    const std::int64_t extent = in[i];
    const bool reduced = (axes >> i & 1u) != 0;
    if (extent != 1) {
      if (count > 0 && runs[count - 1].reduced == reduced) {
        runs[count - 1].extent *= extent;
      } else {
        runs[count++] = {extent, stride, reduced};
      }
    }
    stride *= extent;
  }
  ReducePlan plan;
  if (count == 0) return plan;
  plan.inner = runs[0].extent;
  plan.inner_reduced = runs[0].reduced;
  for (int i = count - 1; i > 0; --i) {
    MergedDims& to = runs[i].reduced ? plan.reduced : plan.kept;
    to.dims[to.rank] = runs[i].extent;
    to.strides[to.rank++] = runs[i].stride;
    to.count *= runs[i].extent;
  }
  return plan;
}

}  // namespace lamina
