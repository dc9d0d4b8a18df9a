// Var: a tensor on a tape. Ops over vars run and record; a var knows its tape, so that layers need no context argument.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

class Tape;

/// Where a tape lives now. Vars point here, so that a moved tape is found and a dropped one is an error, not a crash.
class TapeAnchor final : public Counted {
 public:
  Tape* tape = nullptr;
};

/// A value handle: counts as an owner of its tensor, and outlives the tape (ops on it then throw TapeError).
class Var {
 public:
  /// Undefined until assigned.
  Var() = default;
  Var(Tensor value, Ref<TapeAnchor> anchor, int slot)
      : value_(std::move(value)), anchor_(std::move(anchor)), slot_(slot) {}

  const Tensor& value() const noexcept { return value_; }
  const Shape& shape() const noexcept { return value_.shape(); }
  DType dtype() const noexcept { return value_.dtype(); }
  bool defined() const noexcept { return value_.defined(); }
  /// The tape. Throws TapeError when it is gone.
  Tape& tape() const;
  /// Its number on the tape.
  int slot() const noexcept { return slot_; }

 private:
  Tensor value_;
  Ref<TapeAnchor> anchor_;
  int slot_ = -1;
};

using Vars = InlineVector<Var, 3>;

namespace detail {
/// Runs an op on the values and records it on the tape of the vars among them (null: a constant).
Vars apply_recorded(const OpRecord& op, const void* attrs, std::span<const Tensor* const> values,
                    std::span<const Var* const> vars);
}  // namespace detail

template <>
struct Applier<Var> {
  static const Tensor& value(const Var& v) { return v.value(); }
  static const Var* var(const Var& v) { return &v; }
  static const Var* var(const Tensor&) { return nullptr; }

  template <class... X>
  static Vars apply(const OpRecord& op, const void* attrs, const X&... x) {
    const std::array<const Tensor*, sizeof...(X)> values{&Applier<X>::value(x)...};
    const std::array<const Var*, sizeof...(X)> vars{var(x)...};
    return detail::apply_recorded(op, attrs, values, vars);
  }
  static Vars apply(const OpRecord& op, const void* attrs, std::span<const Var* const> x) {
    InlineVector<const Tensor*, 8> values;
    for (const Var* v : x) values.push_back(&v->value());
    return detail::apply_recorded(op, attrs, values, x);
  }
};

}  // namespace lamina
