#include "lamina/kernels/full/op.hpp"

#include <algorithm>

#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/strided.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

Support supports_all(const Full::Attrs&, Operands, Operands) { return Support::yes(); }

// One store an element, which the compiler makes as wide as every machine has: it runs at the speed of memory.
void fill(const Launch<Full::Attrs>& launch) {
  const std::int64_t count = launch.out[0].count();
  visit(launch.out[0].dtype, [&]<class T>() {
    T value;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      value = T(static_cast<float>(launch.attrs.value));
    } else {
      value = static_cast<T>(launch.attrs.value);
    }
    T* y = launch.out[0].as<T>();
    run_blocks(launch.executor, ceil_div(count, kElementwiseBlock), [&](std::int64_t block) {
      const std::int64_t lo = block * kElementwiseBlock;
      std::fill(y + lo, y + std::min(count, lo + kElementwiseBlock), value);
    });
  });
}

}  // namespace

template <>
std::span<const Variant> cpu_variants<Full>() {
  static constexpr Variant table[] = {variant<Full, supports_all, fill>("full.cpu.fill")};
  return table;
}

}  // namespace lamina
