// The matrix product for vector code: operands that pack themselves, and the engine's call. Included by vector code
// after simd.hpp (no include guard); the including .cpp includes cpu/gemm.hpp and cpu/scratch.hpp.
//
//   gemm(m, n, k, a, b, store, executor, pool);
//
// a and b are objects with `void pack(float* to, first, lines, k0, steps) const` (see GemmOperand::pack) and
// `GemmOperand direct() const` ({} if not f32 in memory); GemmMatrix<T> below is the usual one. A convolution writes
// its own: pack() then reads the image at the positions that (line, k) stand for. `store` is called with (const float*
// tile, row, rows, column, columns), see GemmProblem::store; store_tile below is the usual loop.
#include "lamina/kernels/cpu/simd/gemm_micro.hpp"
#include "lamina/kernels/cpu/simd/transpose.hpp"

#if LAMINA_LANES == 16
inline constexpr Isa kIsa = LAMINA_REGISTER_LANES == 16 ? Isa::avx512 : Isa::wide;
#else
inline constexpr Isa kIsa = LAMINA_LANES == 8 ? Isa::avx2 : Isa::baseline;
#endif

/// The first n elements as lanes (all from kLanes on), the others 0.
template <class T>
LAMINA_INLINE vf load_part(const T* p, std::int64_t n) {
  return n >= kLanes ? Lanes<T>::load(p) : Lanes<T>::load(p, n);
}
template <class T>
LAMINA_INLINE void store_part(T* p, vf v, std::int64_t n) {
  if (n >= kLanes) return Lanes<T>::store(p, v);
  Lanes<T>::store(p, v, n);
}

/// Packs a panel of kStride lines (a multiple of kLanes) of which `lines` are there.
template <int kStride, class T>
[[gnu::noinline]] void pack_panel(float* to, const T* from, std::int64_t line_stride, std::int64_t k_stride,
                                  std::int64_t lines, std::int64_t steps) {
  if (line_stride == 1) {
    if (lines == kStride) {
      for (std::int64_t k = 0; k < steps; ++k, to += kStride, from += k_stride) {
        for (int i = 0; i < kStride; i += kLanes) store(to + i, Lanes<T>::load(from + i));
      }
      return;
    }
    for (std::int64_t k = 0; k < steps; ++k, to += kStride, from += k_stride) {
      for (std::int64_t i = 0; i < kStride; i += kLanes) {
        store(to + i, i < lines ? load_part(from + i, lines - i) : vf{});
      }
    }
    return;
  }
  if (k_stride == 1) {
    for (std::int64_t i = 0; i < kStride; i += kLanes) {
      for (std::int64_t k = 0; k < steps; k += kLanes) {
        vf square[kLanes];
        if (i + kLanes <= lines && k + kLanes <= steps) {
          for (int r = 0; r < kLanes; ++r) square[r] = Lanes<T>::load(from + (i + r) * line_stride + k);
        } else {
          for (int r = 0; r < kLanes; ++r) {
            square[r] = i + r < lines ? load_part(from + (i + r) * line_stride + k, steps - k) : vf{};
          }
        }
        transpose(square);
        float* at = to + k * kStride + i;
        if (k + kLanes <= steps) {
          for (int r = 0; r < kLanes; ++r) store(at + r * kStride, square[r]);
        } else {
          for (std::int64_t r = 0; k + r < steps; ++r) store(at + r * kStride, square[r]);
        }
      }
    }
    return;
  }
  for (std::int64_t k = 0; k < steps; ++k) {
    for (std::int64_t i = 0; i < kStride; ++i) {
      to[k * kStride + i] = i < lines ? Lanes<T>::get(from + i * line_stride + k * k_stride) : 0.0f;
    }
  }
}

/// A matrix in memory: kStride is kGemmStrideA for A, kGemmNr for B; lines are rows of A, columns of B.
template <class T, int kStride>
struct GemmMatrix {
  const T* data;
  std::int64_t line_stride;
  std::int64_t k_stride;
  void pack(float* to, std::int64_t first, std::int64_t lines, std::int64_t k0, std::int64_t steps) const {
    pack_panel<kStride>(to, data + first * line_stride + k0 * k_stride, line_stride, k_stride, lines, steps);
  }
  GemmOperand direct() const {
    if constexpr (sizeof(T) == sizeof(float)) return {nullptr, nullptr, data, line_stride, k_stride};
    return {};
  }
};
template <class T>
using GemmA = GemmMatrix<T, kGemmStrideA>;
template <class T>
using GemmB = GemmMatrix<T, kGemmNr>;

/// Writes f(value, row, column) of each element of a tile to a matrix whose rows are `stride` apart. f works on lanes;
/// its column is that of the first lane and lanes past the last column are not stored.
template <class T, class F>
LAMINA_INLINE void store_tile(const float* tile, T* c, std::int64_t stride, std::int64_t row, std::int64_t rows,
                              std::int64_t column, std::int64_t columns, F f) {
  T* to = c + row * stride + column;
  for (std::int64_t i = 0; i < rows; ++i, tile += kGemmNr, to += stride) {
    if (columns == kGemmNr) {
      Lanes<T>::store(to, f(load(tile), row + i, column));
      Lanes<T>::store(to + kLanes, f(load(tile + kLanes), row + i, column + kLanes));
    } else {
      for (std::int64_t j = 0; j < columns; j += kLanes) {
        store_part(to + j, f(load(tile + j), row + i, column + j), columns - j);
      }
    }
  }
}

template <class A>
GemmOperand gemm_operand(const A& a) {
  GemmOperand operand = a.direct();
  operand.object = &a;
  operand.pack = [](const void* object, float* to, std::int64_t first, std::int64_t lines, std::int64_t k0,
                    std::int64_t steps) { static_cast<const A*>(object)->pack(to, first, lines, k0, steps); };
  return operand;
}

template <class A, class B, class S>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const A& a, const B& b, const S& store, Executor& executor,
          MemoryPool& pool) {
  GemmProblem problem{m, n, k, gemm_operand(a), gemm_operand(b), nullptr, &store};
  problem.store = [](const void* object, const float* tile, std::int64_t row, std::int64_t rows, std::int64_t column,
                     std::int64_t columns) { (*static_cast<const S*>(object))(tile, row, rows, column, columns); };
  gemm(kIsa, problem, executor, pool);
}
