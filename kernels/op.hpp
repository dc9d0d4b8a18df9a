// The vocabulary of an op record. An op is declared once, in kernels/<folder>/op.hpp, as a struct that satisfies the
// concept `Op` below; dispatch, autograd, tests, benchmarks, costs and the support table are all read from it.
// docs/add-an-op.md walks through one. Everything here is a value or a pure function; thread-safe.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/tensor.hpp"

namespace lamina {

/// What one launch costs. FMA = 2 FLOPs; add, multiply, divide, compare, min/max, sqrt, exp, log, tanh, erf = 1 each;
/// negation, absolute value, selection, conversion and data movement = 0. Bytes are those of the operands as stored.
struct Cost {
  std::int64_t flops = 0;
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

/// The cost of an op that streams every operand once: bytes from the metas, `flops` as given.
Cost stream_cost(std::int64_t flops, MetasIn in, MetasIn out);

/// Which of the op's inputs and outputs (bit i = number i) one operand's gradient reads.
struct Keep {
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
};
constexpr Keep keep_inputs(std::initializer_list<int> which) {
  Keep keep;
  for (const int i : which) keep.inputs |= 1u << i;
  return keep;
}
constexpr Keep keep_outputs(std::initializer_list<int> which) {
  Keep keep;
  for (const int i : which) keep.outputs |= 1u << i;
  return keep;
}
constexpr Keep operator|(Keep a, Keep b) { return {a.inputs | b.inputs, a.outputs | b.outputs}; }

/// What backward keeps. By default per operand gradient, so that each is released as it is used. `unsplit` ops compute
/// all operand gradients in one kernel: they declare the same for every operand and keep it until the kernel ran.
struct Saves {
  std::array<Keep, 8> for_operand{};
  bool unsplit = false;
  constexpr Keep operand(std::size_t i) const { return for_operand[i < 8 ? i : 7]; }
};

/// Which operands' gradients are wanted. Operands beyond the 63rd are wanted together.
class Needs {
 public:
  constexpr Needs() = default;
  constexpr explicit Needs(std::uint64_t bits) : bits_(bits) {}
  constexpr bool operator[](std::size_t i) const { return ((bits_ >> (i < 63 ? i : 63)) & 1u) != 0; }
  constexpr bool any() const { return bits_ != 0; }
  constexpr std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_ = 0;
};

/// What a vjp sees of the forward call: the tensors its record asked to keep, and the metas of all operands.
class Saved {
 public:
  Saved(std::span<const Tensor> inputs, std::span<const Tensor> outputs, MetasIn input_metas, MetasIn output_metas)
      : inputs_(inputs), outputs_(outputs), input_metas_(input_metas), output_metas_(output_metas) {}
  /// Undefined unless the record keeps it for a gradient that is wanted.
  const Tensor& input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : undefined(); }
  const Tensor& output(std::size_t i) const { return i < outputs_.size() ? outputs_[i] : undefined(); }
  const Meta& input_meta(std::size_t i) const { return input_metas_[i]; }
  const Meta& output_meta(std::size_t i) const { return output_metas_[i]; }
  std::size_t inputs() const { return input_metas_.size(); }

 private:
  static const Tensor& undefined() noexcept;
  std::span<const Tensor> inputs_, outputs_;
  MetasIn input_metas_, output_metas_;
};

// ---- references: naive, on dense row-major host arrays ----

/// An operand of a reference. Floating elements are in `real`, integer ones in `index`; the other pointer is null.
template <class Real>
struct RefIn {
  Shape shape;
  const Real* real = nullptr;
  const std::int64_t* index = nullptr;
};
template <class Real>
struct RefOut {
  Shape shape;
  Real* real = nullptr;
  std::int64_t* index = nullptr;
};
template <class Real>
using In = std::span<const RefIn<Real>>;
template <class Real>
using Out = std::span<const RefOut<Real>>;

// ---- samples: the inputs every check of the op runs on ----

/// How a sample operand is filled. Values are drawn from Philox keyed by the op, the sample and the operand.
struct Fill {
  enum class Kind : std::uint8_t { normal, uniform, distinct, index, zeros } kind = Kind::normal;
  double lo = 0;
  double hi = 1;    ///< uniform: range; index: integers in [lo, hi)
  double kink = 0;  ///< values closer than `gap` to it are moved away, so that finite differences are valid
  double gap = 0;

  static constexpr Fill normal(double scale = 1) { return {.kind = Kind::normal, .hi = scale}; }
  static constexpr Fill uniform(double lo, double hi) { return {.kind = Kind::uniform, .lo = lo, .hi = hi}; }
  /// A shuffled arithmetic progression: no ties, neighbours at least 0.05 apart.
  static constexpr Fill distinct() { return {.kind = Kind::distinct}; }
  static constexpr Fill index(std::int64_t lo, std::int64_t hi) {
    return {.kind = Kind::index, .lo = static_cast<double>(lo), .hi = static_cast<double>(hi)};
  }
  static constexpr Fill zeros() { return {.kind = Kind::zeros}; }
  constexpr Fill away_from(double value, double distance = 1e-2) const {
    Fill fill = *this;
    fill.kink = value;
    fill.gap = distance;
    return fill;
  }
};

struct SampleOperand {
  Shape shape;
  Fill fill = Fill::normal();
  DType dtype = DType::f32;  ///< floating operands are also run in the op's other floating dtypes
  bool accumulated = false;  ///< this one then in what sums of that dtype are accumulated in
};

template <class Attrs>
struct Sample {
  std::string name;  ///< "tall", "empty", "odd", ...; unique within the op
  Attrs attrs;
  std::vector<SampleOperand> inputs;
};

/// How far a kernel may be from the float64 reference: |x - ref| <= ulps * 2^-p * growth(k) * scale, where 2^-p is half
/// the spacing at 1 of the output's dtype, and k the FLOPs per output element that is not exactly 0: an element without
/// terms has no share in them, nor in the root mean square.
struct Tolerance {
  enum class Growth : std::uint8_t { none, sqrt_k, k } growth = Growth::none;
  enum class Scale : std::uint8_t {
    element,  ///< |ref| of the element: no cancellation inside the op
    tensor,   ///< max(|ref|, root mean square of the output): sums of terms of both signs
  } scale = Scale::element;
  double ulps = 4;
};

/// An op whose cost declares fewer bytes read than its inputs have (a slice, a gather) says so by one more member,
/// `static constexpr bool reads_part = true`; of all others the harness demands every byte. `in_place = true` says that
/// the first outputs may lie on the first inputs, the others on the last inputs (values, gradients, state -> values,
/// state).
template <class T>
concept Op = requires(const typename T::Attrs& attrs, MetasIn metas, const Saved& saved, TensorsIn cotangents,
                      Needs needs, In<double> in, Out<double> out) {
  { T::name } -> std::convertible_to<std::string_view>;
  { T::outputs } -> std::convertible_to<int>;         // number of outputs; -1: depends on the attributes
  { T::infer(attrs, metas) } -> std::same_as<Metas>;  // shapes and dtypes of all outputs; throws ShapeError, DTypeError
  { T::cost(attrs, metas, metas) } -> std::same_as<Cost>;  // of metas as infer gives them
  { T::saves } -> std::convertible_to<Saves>;
  { T::vjp(attrs, saved, cotangents, needs) } -> std::same_as<Tensors>;  // one per input; undefined = not needed
  { T::template reference<double>(attrs, in, out) };
  { T::samples() } -> std::same_as<std::vector<Sample<typename T::Attrs>>>;
  { T::tolerance } -> std::convertible_to<Tolerance>;
};

/// For vjp of ops whose gradient nobody may take (updates, gradients of gradients). Throws TapeError.
[[noreturn]] void no_gradient(std::string_view op);

}  // namespace lamina
