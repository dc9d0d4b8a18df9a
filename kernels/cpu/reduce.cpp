#include "lamina/kernels/cpu/reduce.hpp"

#include <cstdlib>

#include "lamina/core/error.hpp"

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

Scratch::Scratch(std::int64_t bytes) : data_(nullptr) {
  if (bytes == 0) return;
  constexpr std::int64_t kAlign = 64;
  data_ = std::aligned_alloc(kAlign, static_cast<std::size_t>((bytes / kAlign + 1) * kAlign));
  if (data_ == nullptr) fail<OutOfMemory>("cpu", "{} bytes of scratch memory", bytes);
}

Scratch::~Scratch() { std::free(data_); }

}  // namespace lamina
