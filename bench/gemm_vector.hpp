// The plain f32 product, as matmul calls the engine.
#include "lamina/kernels/cpu/simd/gemm.hpp"

[[maybe_unused]] void product(std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t a_row,
                              std::int64_t a_k, const float* b, std::int64_t b_column, std::int64_t b_k, float* c,
                              Executor& executor, MemoryPool& pool) {
  const auto store = [&](const float* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
                         std::int64_t columns) {
    store_tile(tile, c, n, row, rows, column, columns, [](vf x, std::int64_t, std::int64_t) { return x; });
  };
  gemm(m, n, k, GemmA<float>{a, a_row, a_k}, GemmB<float>{b, b_column, b_k}, store, executor, pool);
}
