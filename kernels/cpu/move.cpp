#include "lamina/kernels/cpu/move.hpp"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lamina {

namespace {

constexpr std::int64_t kBlockBytes = 65536;

struct Dim {
  std::int64_t extent, from, to;  // strides
};

// The dims in the order of the targets' strides, longest first, neighbours merged where one step serves both.
struct Walk {
  std::array<Dim, kMaxRank> dims;
  int rank = 0;

  Walk(const Shape& shape, const Strides& from, const Strides& to) {
    for (int i = 0; i < shape.rank(); ++i) {
      const auto d = static_cast<std::size_t>(i);
      if (shape[i] != 1) dims[static_cast<std::size_t>(rank++)] = {shape[i], from[d], to[d]};
    }
    for (int i = 1; i < rank; ++i) {  // stable, and unlike std::stable_sort without a buffer
      const Dim dim = dims[static_cast<std::size_t>(i)];
      int at = i;
      for (; at > 0 && dims[static_cast<std::size_t>(at - 1)].to < dim.to; --at) {
        dims[static_cast<std::size_t>(at)] = dims[static_cast<std::size_t>(at - 1)];
      }
      dims[static_cast<std::size_t>(at)] = dim;
    }
    int merged = 0;
    for (int i = 0; i < rank; ++i) {
      const Dim dim = dims[static_cast<std::size_t>(i)];
      if (merged > 0) {
        Dim& outer = dims[static_cast<std::size_t>(merged - 1)];
        if (outer.from == dim.from * dim.extent && outer.to == dim.to * dim.extent) {
          outer = {outer.extent * dim.extent, dim.from, dim.to};
          continue;
        }
      }
      dims[static_cast<std::size_t>(merged++)] = dim;
    }
    rank = merged;
  }

  Dim take(int which) {
    const Dim dim = dims[static_cast<std::size_t>(which)];
    std::copy(dims.begin() + which + 1, dims.begin() + rank, dims.begin() + which);
    --rank;
    return dim;
  }
  std::int64_t count() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dims[static_cast<std::size_t>(i)].extent;
    return n;
  }
  // f(from offset, to offset) for the positions [first, last) in row-major order.
  template <class F>
  void visit(std::int64_t first, std::int64_t last, F f) const {
    std::array<std::int64_t, kMaxRank> index{};
    std::int64_t rest = first, from = 0, to = 0;
    for (int i = rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      index[d] = rest % dims[d].extent;
      rest /= dims[d].extent;
      from += index[d] * dims[d].from;
      to += index[d] * dims[d].to;
    }
    for (std::int64_t n = first; n < last; ++n) {
      f(from, to);
      for (int i = rank - 1; i >= 0; --i) {
        const Dim& dim = dims[static_cast<std::size_t>(i)];
        from += dim.from;
        to += dim.to;
        if (++index[static_cast<std::size_t>(i)] < dim.extent) break;
        from -= dim.from * dim.extent;
        to -= dim.to * dim.extent;
        index[static_cast<std::size_t>(i)] = 0;
      }
    }
  }
};

// to[i * to_stride + j] = from[j * from_stride + i] for a small square that fills whole cache lines on both sides.
template <class T>
inline constexpr std::int64_t kSquare = 64 / static_cast<std::int64_t>(sizeof(T));

template <class T>
void transpose_square(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride) {
  constexpr std::int64_t n = kSquare<T>;
#if defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    for (std::int64_t j = 0; j < n; j += 4) {
      for (std::int64_t i = 0; i < n; i += 4) {
        auto row = [&](std::int64_t k) {
          return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (j + k) * from_stride + i));
        };
        auto put = [&](std::int64_t k, __m128i v) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + k) * to_stride + j), v);
        };
        const __m128i r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
        const __m128i a = _mm_unpacklo_epi32(r0, r1), b = _mm_unpackhi_epi32(r0, r1);
        const __m128i c = _mm_unpacklo_epi32(r2, r3), d = _mm_unpackhi_epi32(r2, r3);
        put(0, _mm_unpacklo_epi64(a, c));
        put(1, _mm_unpackhi_epi64(a, c));
        put(2, _mm_unpacklo_epi64(b, d));
        put(3, _mm_unpackhi_epi64(b, d));
      }
    }
    return;
  }
  if constexpr (sizeof(T) == 2) {
    for (std::int64_t j = 0; j < n; j += 8) {
      for (std::int64_t i = 0; i < n; i += 8) {
        __m128i r[8], s[8];
        for (int k = 0; k < 8; ++k) {
          r[k] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (j + k) * from_stride + i));
        }
        for (int k = 0; k < 4; ++k) {
          s[2 * k] = _mm_unpacklo_epi16(r[2 * k], r[2 * k + 1]);
          s[2 * k + 1] = _mm_unpackhi_epi16(r[2 * k], r[2 * k + 1]);
        }
        for (int k = 0; k < 2; ++k) {  // r[4k + q]: columns 2q and 2q + 1 of rows 4k..4k+3
          r[4 * k] = _mm_unpacklo_epi32(s[4 * k], s[4 * k + 2]);
          r[4 * k + 1] = _mm_unpackhi_epi32(s[4 * k], s[4 * k + 2]);
          r[4 * k + 2] = _mm_unpacklo_epi32(s[4 * k + 1], s[4 * k + 3]);
          r[4 * k + 3] = _mm_unpackhi_epi32(s[4 * k + 1], s[4 * k + 3]);
        }
        for (int q = 0; q < 4; ++q) {
          auto put = [&](std::int64_t k, __m128i v) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(to + (i + k) * to_stride + j), v);
          };
          put(2 * q, _mm_unpacklo_epi64(r[q], r[4 + q]));
          put(2 * q + 1, _mm_unpackhi_epi64(r[q], r[4 + q]));
        }
      }
    }
    return;
  }
#endif
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) to[i * to_stride + j] = from[j * from_stride + i];
  }
}

// Columns [lo, hi) of the target's rows; `row` is contiguous in `from`, `column` in `to`.
template <class T>
void transpose_squares(const T* from, T* to, const Dim& row, const Dim& column, std::int64_t lo, std::int64_t hi) {
  constexpr std::int64_t n = kSquare<T>;
  for (std::int64_t j = lo; j < hi; j += n) {
    for (std::int64_t i = 0; i < row.extent; i += n) {
      const T* source = from + j * column.from + i;
      T* target = to + i * row.to + j;
      if (i + n <= row.extent && j + n <= hi) {
        transpose_square(source, column.from, target, row.to);
        continue;
      }
      const std::int64_t rows = std::min(n, row.extent - i), columns = std::min(n, hi - j);
      for (std::int64_t a = 0; a < rows; ++a) {
        for (std::int64_t b = 0; b < columns; ++b) target[a * row.to + b] = source[b * column.from + a];
      }
    }
  }
}

constexpr std::int64_t kNearBytes = 1 << 18;    // a matrix up to that stays in the cache and needs no tiles
constexpr std::int64_t kStreamBytes = 1 << 23;  // more than that leaves the cache anyway: stores go past it

template <class T>
inline constexpr std::int64_t kTile = std::max<std::int64_t>(32, 128 / static_cast<std::int64_t>(sizeof(T)));

// A tile by way of a buffer, whose rows then leave in one piece. Rows of a large matrix are often a power of two apart
// and share a set of the cache: written piece by piece, their lines would leave it half full. `next` is the tile to
// come, fetched ahead because it lies in pages that the hardware does not foresee.
template <class T>
void transpose_tile(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, const T* next,
                    [[maybe_unused]] bool stream) {
  constexpr std::int64_t n = kTile<T>, line = 64 / static_cast<std::int64_t>(sizeof(T));
  alignas(64) T tile[n * n];
  for (std::int64_t j = 0; j < n; j += kSquare<T>) {
    for (std::int64_t i = 0; i < n; i += kSquare<T>) {
      transpose_square(from + j * from_stride + i, from_stride, tile + i * n + j, n);
    }
  }
  for (std::int64_t i = 0; i < n; ++i, to += to_stride, next += from_stride) {
    for (std::int64_t k = 0; k < n; k += line) __builtin_prefetch(next + k);
#if defined(__SSE2__)
    if (stream) {
      constexpr std::int64_t step = 16 / static_cast<std::int64_t>(sizeof(T));
      for (std::int64_t k = 0; k < n; k += step) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                         _mm_load_si128(reinterpret_cast<const __m128i*>(tile + i * n + k)));
      }
      continue;
    }
#endif
    std::memcpy(to, tile + i * n, sizeof(T) * n);
  }
}

// As transpose_squares, for matrices beyond the cache.
template <class T>
void transpose_tiles(const T* from, T* to, const Dim& row, const Dim& column, std::int64_t lo, std::int64_t hi,
                     bool large) {
  constexpr std::int64_t n = kTile<T>;
  const std::int64_t rows = row.extent / n * n, columns = lo + (hi - lo) / n * n;
  const auto whole_lines = [](auto address) { return address % 64 == 0; };
  const bool stream = large && whole_lines(reinterpret_cast<std::uintptr_t>(to + lo)) &&
                      whole_lines(static_cast<std::uintptr_t>(row.to) * sizeof(T));
  for (std::int64_t j = lo; j < columns; j += n) {
    for (std::int64_t i = 0; i < rows; i += n) {
      const T* source = from + j * column.from + i;
      transpose_tile(source, column.from, to + i * row.to + j, row.to, i + n < rows ? source + n : source, stream);
    }
  }
#if defined(__SSE2__)
  if (stream) _mm_sfence();
#endif
  const Dim below{row.extent - rows, 1, row.to};
  if (below.extent > 0) transpose_squares(from + rows, to + rows * row.to, below, column, lo, columns);
  if (columns < hi) transpose_squares(from, to, row, column, columns, hi);
}

template <class T>
void move_row(const T* from, std::int64_t from_step, T* to, std::int64_t to_step, std::int64_t n) {
  if (from_step == 1 && to_step == 1) {
    if (n >= 16) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i];
    }
  } else if (from_step == 0 && to_step == 1) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i * to_step] = from[i * from_step];
  }
}

template <class F>
void run_blocks(Executor& executor, std::int64_t blocks, F f) {
  if (blocks == 1) {
    f(0);
  } else {
    executor.run(blocks, f);
  }
}

template <class T>
void move(Walk walk, const T* from, T* to, Executor& executor) {
  constexpr std::int64_t block = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
  if (walk.rank == 0) {
    *to = *from;
    return;
  }
  const Dim inner = walk.take(walk.rank - 1);
  int contiguous = -1;  // the dim along which `from` is contiguous, where `to` is so along `inner`
  if (inner.to == 1 && inner.from != 1 && inner.from != 0) {
    for (int i = 0; i < walk.rank; ++i) {
      if (walk.dims[static_cast<std::size_t>(i)].from == 1) contiguous = i;
    }
  }
  if (contiguous >= 0) {
    const Dim row = walk.take(contiguous);
    const std::int64_t outer = walk.count();
    const std::int64_t matrix = row.extent * inner.extent, size = sizeof(T);
    const bool near = matrix * size <= kNearBytes;
    const std::int64_t unit = near ? kSquare<T> : kTile<T>;
    const std::int64_t strips = std::max<std::int64_t>(1, matrix / block);
    const std::int64_t width = std::max(unit, ((inner.extent + strips - 1) / strips + unit - 1) / unit * unit);
    const std::int64_t across = (inner.extent + width - 1) / width;
    const std::int64_t together = std::max<std::int64_t>(1, block / matrix);  // small matrices
    run_blocks(executor, (outer + together - 1) / together * across, [&](std::int64_t b) {
      const std::int64_t lo = b % across * width, hi = std::min(inner.extent, lo + width);
      walk.visit(b / across * together, std::min(outer, (b / across + 1) * together),
                 [&](std::int64_t f, std::int64_t t) {
                   if (near) {
                     transpose_squares(from + f, to + t, row, inner, lo, hi);
                   } else {
                     transpose_tiles(from + f, to + t, row, inner, lo, hi, outer * matrix * size > kStreamBytes);
                   }
                 });
    });
    return;
  }
  const std::int64_t rows = walk.count();
  if (inner.extent > block) {
    const std::int64_t across = (inner.extent + block - 1) / block;
    run_blocks(executor, rows * across, [&](std::int64_t b) {
      const std::int64_t lo = b % across * block;
      walk.visit(b / across, b / across + 1, [&](std::int64_t f, std::int64_t t) {
        move_row(from + f + lo * inner.from, inner.from, to + t + lo * inner.to, inner.to,
                 std::min(block, inner.extent - lo));
      });
    });
    return;
  }
  const std::int64_t together = block / inner.extent;
  run_blocks(executor, (rows + together - 1) / together, [&](std::int64_t b) {
    walk.visit(b * together, std::min(rows, (b + 1) * together),
               [&](std::int64_t f, std::int64_t t) { move_row(from + f, inner.from, to + t, inner.to, inner.extent); });
  });
}

}  // namespace

void move_elements(const Shape& shape, std::size_t size, Place<const std::byte> from, Place<std::byte> to,
                   Executor& executor) {
  if (shape.count() == 0) return;
  const Walk walk(shape, from.strides, to.strides);
  auto as = [&]<class T>(T) {
    move(walk, reinterpret_cast<const T*>(from.data), reinterpret_cast<T*>(to.data), executor);
  };
  switch (size) {
    case 1: return as(std::uint8_t{});
    case 2: return as(std::uint16_t{});
    case 4: return as(std::uint32_t{});
    default: return as(std::uint64_t{});
  }
}

void fill_elements(const Operand& out, double value, Executor& executor) {
  visit(out.dtype, [&]<class T>() {
    T element;
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      element = T(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    constexpr std::int64_t block = kBlockBytes / static_cast<std::int64_t>(sizeof(T));
    const std::int64_t count = out.count();
    if (count == 0) return;
    run_blocks(executor, (count + block - 1) / block, [&](std::int64_t b) {
      std::fill_n(out.as<T>() + b * block, std::min(block, count - b * block), element);
    });
  });
}

}  // namespace lamina
