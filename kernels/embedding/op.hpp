// embedding: rows of a table, picked by ids.
#pragma once

#include "lamina/kernels/apply.hpp"

namespace lamina {

/// (ids i64, any shape; table (V,D)) -> (ids' shape, D).
struct Embedding {
  struct Attrs {};
  static constexpr std::string_view name = "embedding";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{.for_operand = {Keep{}, keep_inputs({0})}};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{.ulps = 0};
  static constexpr bool reads_part = true;
};

/// (cotangent (ids' shape, D), ids) -> (V,D): each row the sum of the cotangents of its id, in the order of their
/// positions; the same bits on every run and for every number of threads.
struct EmbeddingGrad {
  struct Attrs {
    std::int64_t rows = 0;  ///< V
  };
  static constexpr std::string_view name = "embedding_grad";
  static constexpr int outputs = 1;
  static Metas infer(const Attrs&, MetasIn in);
  static Cost cost(const Attrs&, MetasIn in, MetasIn out);
  static constexpr Saves saves{};
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs);
  template <class Real>
  static void reference(const Attrs&, In<Real> in, Out<Real> out);
  static std::vector<Sample<Attrs>> samples();
  static constexpr Tolerance tolerance{
      .growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 4};
};

/// Throws IndexError naming id, position and V for an id outside [0, V). For host data.
void check_ids(std::string_view op, std::span<const std::int64_t> ids, std::int64_t rows);

/// table[ids]. Any dtype of the table; the gradient (for floating ones, dense) is for the table.
/// Throws IndexError naming id, position and V for an id outside [0, V), before anything is written; DTypeError unless
/// the ids are i64; ShapeError unless the table is (V,D) and the ids' rank is at most 7.
template <TensorLike I, TensorLike T>
auto embedding(const I& ids, const T& table, const SourceLocation& at = SourceLocation::current()) {
  return apply<Embedding>({}, at, ids, table);
}

}  // namespace lamina
