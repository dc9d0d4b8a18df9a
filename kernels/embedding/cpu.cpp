#include <algorithm>
#include <cstring>

#include "lamina/kernels/cpu/reduce.hpp"
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/embedding/op.hpp"

namespace lamina {

namespace {

Support supports_all(const Embedding::Attrs&, Operands, Operands) { return Support::yes(); }

std::span<const std::int64_t> ids_of(const Operand& ids) {
  return {ids.as<const std::int64_t>(), static_cast<std::size_t>(ids.count())};
}

// Moves rows, whatever their elements mean.
void pick_rows(const Launch<Embedding::Attrs>& launch) {
  const std::span<const std::int64_t> ids = ids_of(launch.in[0]);
  check_ids(Embedding::name, ids, launch.in[1].shape()[0]);
  const std::int64_t bytes = launch.in[1].shape()[1] * static_cast<std::int64_t>(size_of(launch.in[1].dtype));
  if (bytes == 0) return;
  const auto n = static_cast<std::int64_t>(ids.size());
  const std::int64_t ids_a_block = block_of(bytes, 2 * kReduceBlock);
  run_blocks(launch.executor, ceil_div(n, ids_a_block), [&](std::int64_t block) {
    const std::int64_t end = std::min(n, (block + 1) * ids_a_block);
    for (std::int64_t i = block * ids_a_block; i < end; ++i) {
      std::memcpy(launch.out[0].data + i * bytes, launch.in[1].data + ids[static_cast<std::size_t>(i)] * bytes,
                  static_cast<std::size_t>(bytes));
    }
  });
}

// Positions grouped by id, in their order: those of id v are positions[starts[v] .. starts[v + 1]).
struct Grouped {
  Scratch starts, positions;
  Grouped(MemoryPool& pool, std::span<const std::int64_t> ids, std::int64_t rows)
      : starts(pool, static_cast<std::size_t>(rows + 2) * sizeof(std::int64_t)), positions(pool, ids.size_bytes()) {
    // A counting sort. Shifted by one, so that the ends while filling become the starts.
    std::int64_t* at = starts.integers();
    std::fill(at, at + rows + 2, 0);
    for (const std::int64_t id : ids) ++at[id + 2];
    for (std::int64_t v = 2; v < rows + 2; ++v) at[v] += at[v - 1];
    for (std::size_t i = 0; i < ids.size(); ++i) {
      positions.integers()[at[ids[i] + 1]++] = static_cast<std::int64_t>(i);
    }
  }
};

}  // namespace

}  // namespace lamina

#define LAMINA_VECTOR_CODE "lamina/kernels/embedding/vector.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

template <>
std::span<const Variant> cpu_variants<Embedding>() {
  static constexpr Variant table[] = {variant<Embedding, supports_all, pick_rows>("embedding.cpu.rows")};
  return table;
}
template <>
std::span<const Variant> cpu_variants<EmbeddingGrad>() {
  static constexpr Variant table[] = {LAMINA_REDUCE_VARIANTS(EmbeddingGrad, "embedding_grad", embedding_grad)};
  return table;
}

}  // namespace lamina
