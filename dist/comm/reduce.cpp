#include "lamina/dist/comm/reduce.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <vector>

#include "lamina/core/error.hpp"

namespace lamina::comm {

#define LAMINA_VECTOR_BYTES 16
#define LAMINA_HAS_F16C 0
namespace baseline {
namespace {
#include "lamina/dist/comm/reduce_vector.hpp"
}  // namespace
}  // namespace baseline
#undef LAMINA_VECTOR_BYTES
#undef LAMINA_HAS_F16C

// AVX2 is enough: these loops wait for memory.
#if defined(__x86_64__)
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_HAS_F16C 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif
namespace avx2 {
namespace {
#include "lamina/dist/comm/reduce_vector.hpp"
}  // namespace
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

std::span<const ReduceLoop> reduce_loops() {
  static const std::vector<ReduceLoop> usable = [] {
    std::vector<ReduceLoop> loops;
#if defined(__x86_64__)
    // Every processor with AVX2 has F16C; clang 16 cannot be asked for that one.
    if (__builtin_cpu_supports("avx2")) loops.push_back({"avx2", avx2::reduce_any});
#endif
    loops.push_back({"baseline", baseline::reduce_any});
    return loops;
  }();
  return usable;
}

void reduce(DType dtype, Reduction reduction, std::byte* to, const std::byte* a, const std::byte* b,
            std::int64_t count) {
  static const auto run = reduce_loops().front().run;
  run(dtype, reduction, to, a, b, count);
}

void divide(DType dtype, std::byte* data, std::int64_t count, double by) {
  visit(dtype, [&]<class T>() {
    if constexpr (is_floating(dtype_of<T>)) {
      for (std::int64_t i = 0; i < count; ++i) {
        T x;
        __builtin_memcpy(&x, data + static_cast<std::size_t>(i) * sizeof(T), sizeof x);
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          x = T(static_cast<float>(x) / static_cast<float>(by));
        } else {
          x = x / static_cast<T>(by);
        }
        __builtin_memcpy(data + static_cast<std::size_t>(i) * sizeof(T), &x, sizeof x);
      }
    }
  });
}

void check_reduction(DType dtype, Reduction reduction) {
  if (reduction == Reduction::mean && !is_floating(dtype)) {
    fail<ValueError>("reduction", "mean of {}: only floating dtypes have one", name_of(dtype));
  }
  if (dtype == DType::boolean && reduction != Reduction::min && reduction != Reduction::max) {
    fail<ValueError>("reduction", "{} of bool; there are min (and), max (or)", name_of(reduction));
  }
}

}  // namespace lamina::comm
