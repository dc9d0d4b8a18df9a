// Runs an op's naive float64 reference on operands of any dtype and layout: the oracle of every kernel, the f64 path
// of the CPU, and all the kernels of the example device.
#pragma once

#include "lamina/kernels/op.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

using ReferenceFunction = void (*)(const void* attrs, In<double> in, Out<double> out);

template <Op O>
void reference_erased(const void* attrs, In<double> in, Out<double> out) {
  O::template reference<double>(*static_cast<const typename O::Attrs*>(attrs), in, out);
}

/// Converts the operands to dense double or int64 arrays, runs, converts the outputs to their dtypes.
void run_reference(ReferenceFunction reference, const void* attrs, Operands in, Operands out);

/// "<op>.cpu.reference": supports every problem.
template <Op O>
Variant reference_variant(std::string_view name) {
  return {name, Isa::baseline, false, [](const void*, Operands, Operands) { return Support::yes(); },
          [](const void* attrs, Operands in, Operands out, Executor&, Queue&, MemoryPool&) {
            run_reference(&reference_erased<O>, attrs, in, out);
          }};
}

/// A number that counts the operations done to it, for checking declared costs: see Cost for what counts.
class CountingReal {
 public:
  static thread_local constinit std::int64_t flops;

  CountingReal(double v = 0) : value(v) {}  // NOLINT: implicit, as double's own conversions are
  explicit operator double() const { return value; }
  CountingReal& operator+=(CountingReal b) { return *this = *this + b; }
  CountingReal& operator-=(CountingReal b) { return *this = *this - b; }
  CountingReal& operator*=(CountingReal b) { return *this = *this * b; }
  CountingReal& operator/=(CountingReal b) { return *this = *this / b; }
  friend CountingReal operator-(CountingReal a) { return {-a.value}; }
  friend CountingReal operator+(CountingReal a, CountingReal b) { return counted(a.value + b.value); }
  friend CountingReal operator-(CountingReal a, CountingReal b) { return counted(a.value - b.value); }
  friend CountingReal operator*(CountingReal a, CountingReal b) { return counted(a.value * b.value); }
  friend CountingReal operator/(CountingReal a, CountingReal b) { return counted(a.value / b.value); }
  friend bool operator<(CountingReal a, CountingReal b) { return ++flops, a.value < b.value; }
  friend bool operator>(CountingReal a, CountingReal b) { return ++flops, a.value > b.value; }
  friend bool operator<=(CountingReal a, CountingReal b) { return ++flops, a.value <= b.value; }
  friend bool operator>=(CountingReal a, CountingReal b) { return ++flops, a.value >= b.value; }
  friend bool operator==(CountingReal a, CountingReal b) { return ++flops, a.value == b.value; }
  friend CountingReal exp(CountingReal a);
  friend CountingReal log(CountingReal a);
  friend CountingReal tanh(CountingReal a);
  friend CountingReal erf(CountingReal a);
  friend CountingReal sqrt(CountingReal a);
  friend CountingReal abs(CountingReal a);

  double value;

 private:
  static CountingReal counted(double v) { return ++flops, CountingReal(v); }
};

/// Put at the end of an op.cpp: makes the reference for the two number types that use it.
#define LAMINA_INSTANTIATE_REFERENCE(O)                                         \
  template void O::reference<double>(const O::Attrs&, In<double>, Out<double>); \
  template void O::reference<CountingReal>(const O::Attrs&, In<CountingReal>, Out<CountingReal>)

}  // namespace lamina
