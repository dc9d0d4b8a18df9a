// Kernel variants: the implementations of an op on a device. Each has a name in the grammar
//   <op>.<device>.<algorithm>[.<dtype>][.<isa>]        matmul.cpu.packed.f32.avx2
// and says through `supports` whether it can run a problem, or why not. The dispatcher takes the first that can.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "lamina/core/tensor.hpp"

namespace lamina {

/// Instruction sets the CPU kernels are compiled for, in the order of preference. `wide` is the 16-lane form of the
/// vector code compiled for AVX2: it exists to test on any machine what AVX-512 runs, and is never chosen.
enum class Isa : std::uint8_t { baseline, avx2, avx512, wide };
std::string_view name_of(Isa isa) noexcept;

/// Yes, or the reason why not.
struct Support {
  const char* reason = nullptr;
  explicit operator bool() const noexcept { return reason == nullptr; }
  static constexpr Support yes() noexcept { return {}; }
  static constexpr Support no(const char* why) noexcept { return {why}; }
};

/// An operand as a kernel sees it: the address of its first element (layout.offset applied), its layout and dtype.
struct Operand {
  std::byte* data = nullptr;
  const Layout* layout = nullptr;
  DType dtype = DType::f32;

  const Shape& shape() const noexcept { return layout->shape; }
  std::int64_t count() const noexcept { return layout->shape.count(); }
  std::int64_t stride(int dim) const noexcept { return layout->strides[static_cast<std::size_t>(dim)]; }
  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
};
using Operands = std::span<const Operand>;

template <class Attrs>
struct Launch {
  const Attrs& attrs;
  Operands in;
  Operands out;  ///< dense; shapes and dtypes as inferred; uninitialised
  Executor& executor;
  Queue& queue;
  MemoryPool& pool;  ///< for scratch memory, see cpu/scratch.hpp
};

struct Variant {
  std::string_view name;
  Isa isa = Isa::baseline;
  bool dense = true;  ///< operands must be contiguous: the dispatcher copies those that are not
  Support (*supports)(const void* attrs, Operands in, Operands out) = nullptr;
  void (*launch)(const void* attrs, Operands in, Operands out, Executor&, Queue&, MemoryPool&) = nullptr;
};

/// Makes a Variant of typed functions:
///   Support supports(const O::Attrs&, Operands in, Operands out);
///   void launch(const Launch<O::Attrs>&);
template <class O, auto supports, auto launch>
constexpr Variant variant(std::string_view name, Isa isa = Isa::baseline, bool dense = true) {
  using Attrs = typename O::Attrs;
  return {name, isa, dense,
          [](const void* attrs, Operands in, Operands out) -> Support {
            return supports(*static_cast<const Attrs*>(attrs), in, out);
          },
          [](const void* attrs, Operands in, Operands out, Executor& executor, Queue& queue, MemoryPool& pool) {
            launch(Launch<Attrs>{*static_cast<const Attrs*>(attrs), in, out, executor, queue, pool});
          }};
}

/// Supports operands that are all of one floating dtype (integer operands are not looked at).
template <DType dtype>
constexpr bool all_floating(Operands in, Operands out) {
  for (const Operand& o : in) {
    if (is_floating(o.dtype) && o.dtype != dtype) return false;
  }
  for (const Operand& o : out) {
    if (is_floating(o.dtype) && o.dtype != dtype) return false;
  }
  return true;
}

}  // namespace lamina
