#include "lamina/kernels/cpu/gemm.hpp"

#include <algorithm>

#include "lamina/kernels/cpu/scratch.hpp"

#define LAMINA_VECTOR_CODE "lamina/kernels/cpu/simd/gemm_kernel.hpp"
#include "lamina/kernels/cpu/simd/for_each_isa.hpp"

namespace lamina {

const GemmKernel& gemm_kernel(Isa isa) noexcept {
  switch (isa) {
    case Isa::avx512: return avx512::kGemmKernel;
    case Isa::avx2: return avx2::kGemmKernel;
#ifndef LAMINA_NO_WIDE
    case Isa::wide: return wide::kGemmKernel;
#else
    case Isa::wide: break;
#endif
    case Isa::baseline: break;
  }
  return baseline::kGemmKernel;
}

namespace {

constexpr std::int64_t kMaxTile = 14 * 32;                   // floats of the largest mr x nr
constexpr std::int64_t kColumnsATask = 1024;                 // bounds the sums a task keeps: mc x columns
constexpr std::int64_t kPackedB = std::int64_t{2} << 20;     // floats of B packed at a time
constexpr std::int64_t kFlopsATask = std::int64_t{1} << 20;  // below it a task is not split further
constexpr std::int64_t kStackFloats = 4096;

constexpr std::int64_t div_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return div_up(a, b) * b; }

// How B is read: in place; packed by each task as it goes (one block of rows: each panel is packed once anyway); or
// packed by all threads before the tasks.
enum class FromB { direct, task, shared };

struct Plan {
  const GemmProblem& p;
  const GemmKernel& g;
  bool direct_a;
  FromB from_b;
};

// Rows [row, row + rows) x columns [column, column + columns) of C. `shared` is the packed B of a chunk of columns that
// starts at `chunk` and has `chunk_panels` panels.
void run_task(const Plan& plan, MemoryPool& pool, std::int64_t row, std::int64_t rows, std::int64_t column,
              std::int64_t columns, const float* shared, std::int64_t chunk, std::int64_t chunk_panels) {
  const GemmProblem& p = plan.p;
  const GemmKernel& g = plan.g;
  const std::int64_t kc = std::min(p.k, g.kc);
  const std::int64_t row_panels = div_up(rows, g.mr);
  const std::int64_t panels = div_up(columns, g.nr);
  const std::int64_t tile_size = g.mr * g.nr;
  const bool one_pass = p.k <= g.kc;
  const std::int64_t ahead_step = div_up(g.nr, row_panels);  // the next panel of B, spread over the rows

  const std::int64_t size_a = plan.direct_a ? 0 : row_panels * kc * g.stride_a;
  const std::int64_t size_b = plan.from_b == FromB::shared ? 0 : kc * g.nr;
  const std::int64_t size_c = one_pass ? 0 : row_panels * panels * tile_size;
  const std::int64_t size = size_a + size_b + size_c;
  alignas(64) float stack[kStackFloats];
  const Scratch scratch(pool, size <= kStackFloats ? 0 : static_cast<std::size_t>(size) * sizeof(float));
  float* packed_a = size <= kStackFloats ? stack : scratch.floats();
  float* packed_b = packed_a + size_a;
  float* sums = packed_b + size_b;
  alignas(64) float one_tile[kMaxTile];

  for (std::int64_t k0 = 0; k0 < p.k; k0 += kc) {
    const std::int64_t steps = std::min(kc, p.k - k0);
    const bool last = k0 + steps == p.k;
    if (!plan.direct_a) {
      for (std::int64_t i = 0; i < row_panels; ++i) {
        p.a.pack(p.a.object, packed_a + i * kc * g.stride_a, row + i * g.mr,
                 std::min<std::int64_t>(g.mr, rows - i * g.mr), k0, steps);
      }
    }
    for (std::int64_t j = 0; j < panels; ++j) {
      const std::int64_t from = column + j * g.nr;
      const std::int64_t width = std::min<std::int64_t>(g.nr, columns - j * g.nr);
      const float* b = packed_b;
      std::int64_t b_stride = g.nr;
      if (plan.from_b == FromB::shared) {
        b = shared + chunk_panels * g.nr * k0 + (from - chunk) * steps;
      } else if (plan.from_b == FromB::direct && width == g.nr) {
        b = p.b.direct + from + k0 * p.b.k_stride;
        b_stride = p.b.k_stride;
      } else {
        p.b.pack(p.b.object, packed_b, from, width, k0, steps);
      }
      for (std::int64_t i = 0; i < row_panels; ++i) {
        const int height = static_cast<int>(std::min<std::int64_t>(g.mr, rows - i * g.mr));
        float* tile = one_pass ? one_tile : sums + (j * row_panels + i) * tile_size;
        if (plan.direct_a) {
          g.direct(height, steps, p.a.direct + (row + i * g.mr) * p.a.line_stride + k0 * p.a.k_stride, p.a.line_stride,
                   p.a.k_stride, b, b_stride, tile, k0 > 0);
        } else {
          g.packed(height, steps, packed_a + i * kc * g.stride_a, b, b_stride, tile, k0 > 0,
                   b + steps * g.nr + i * ahead_step * steps, ahead_step);
        }
        if (last) p.store(p.object, tile, row + i * g.mr, height, from, width);
      }
    }
  }
}

void store_zeros(const GemmProblem& p, const GemmKernel& g) {
  alignas(64) const float zeros[kMaxTile] = {};
  for (std::int64_t i = 0; i < p.m; i += g.mr) {
    for (std::int64_t j = 0; j < p.n; j += g.nr) {
      p.store(p.object, zeros, i, std::min<std::int64_t>(g.mr, p.m - i), j, std::min<std::int64_t>(g.nr, p.n - j));
    }
  }
}

// In place, rows of A come one a page or worse, one a cache set: worth it only where packing would not pay.
bool read_a_in_place(const GemmProblem& p, const GemmKernel& g) {
  if (p.a.direct == nullptr) return false;
  return p.n <= 4 * g.nr && p.k <= g.kc;
}
bool read_b_in_place(const GemmProblem& p, const GemmKernel& g) {
  if (p.b.direct == nullptr || p.b.line_stride != 1) return false;
  return p.m <= 2 * g.mr || (p.n * p.k <= 16384 && p.m <= 16 * g.mr);
}

}  // namespace

void gemm(Isa isa, const GemmProblem& p, Executor& executor, MemoryPool& pool) {
  if (p.m == 0 || p.n == 0) return;
  const GemmKernel& g = gemm_kernel(isa);
  if (p.k == 0) return store_zeros(p, g);

  std::int64_t row_blocks = div_up(p.m, g.mc);
  const FromB from_b = read_b_in_place(p, g) ? FromB::direct : row_blocks == 1 ? FromB::task : FromB::shared;
  const Plan plan{p, g, read_a_in_place(p, g), from_b};

  // Columns in chunks whose packed B is of bounded size, chunks in tasks. The split depends on the number of threads,
  // the elements of C do not.
  std::int64_t chunk_columns = round_up(p.n, g.nr);
  if (from_b == FromB::shared) {
    chunk_columns = std::min(chunk_columns, std::max<std::int64_t>(kPackedB / p.k / g.nr, 8) * g.nr);
  }
  std::int64_t column_blocks = div_up(chunk_columns, kColumnsATask);
  if (executor.width() > 1) {
    const std::int64_t wanted = 3 * executor.width();
    const std::int64_t flops = p.m * chunk_columns * p.k;
    while (row_blocks * column_blocks < wanted && flops / (row_blocks * column_blocks) > kFlopsATask) {
      // Splitting rows packs no more of A; columns only when the blocks of rows are low or B would be packed again.
      const bool rows_first = from_b == FromB::shared && p.m / row_blocks >= 8 * g.mr;
      if (rows_first || (from_b == FromB::direct && p.m / row_blocks >= p.n / column_blocks)) {
        row_blocks *= 2;
      } else if (chunk_columns / column_blocks >= 2 * g.nr) {
        column_blocks *= 2;
      } else {
        break;
      }
    }
  }
  const std::int64_t task_rows = round_up(div_up(p.m, row_blocks), g.mr);
  const std::int64_t task_columns = round_up(div_up(chunk_columns, column_blocks), g.nr);
  row_blocks = div_up(p.m, task_rows);

  const Scratch scratch(pool,
                        from_b == FromB::shared ? static_cast<std::size_t>(chunk_columns * p.k) * sizeof(float) : 0);
  float* const shared = scratch.floats();
  for (std::int64_t chunk = 0; chunk < p.n; chunk += chunk_columns) {
    const std::int64_t columns = std::min(chunk_columns, p.n - chunk);
    const std::int64_t panels = div_up(columns, g.nr);
    if (from_b == FromB::shared) {
      // A few panels a block, all of k: a packer may walk memory in its own order.
      const std::int64_t group = std::max<std::int64_t>(1, 65536 / (p.k * g.nr));
      auto pack = [&](std::int64_t block) {
        for (std::int64_t k0 = 0; k0 < p.k; k0 += g.kc) {
          const std::int64_t steps = std::min(g.kc, p.k - k0);
          for (std::int64_t j = block * group; j < std::min(panels, (block + 1) * group); ++j) {
            p.b.pack(p.b.object, shared + panels * g.nr * k0 + j * g.nr * steps, chunk + j * g.nr,
                     std::min<std::int64_t>(g.nr, columns - j * g.nr), k0, steps);
          }
        }
      };
      const std::int64_t blocks = div_up(panels, group);
      if (blocks == 1) {
        pack(0);
      } else {
        executor.run(blocks, pack);
      }
    }
    const std::int64_t across = div_up(columns, task_columns);
    auto task = [&](std::int64_t block) {
      const std::int64_t row = block / across * task_rows;
      const std::int64_t column = block % across * task_columns;
      run_task(plan, pool, row, std::min(task_rows, p.m - row), chunk + column,
               std::min(task_columns, columns - column), shared, chunk, panels);
    };
    if (row_blocks * across == 1) {
      task(0);
    } else {
      executor.run(row_blocks * across, task);
    }
  }
}

}  // namespace lamina
