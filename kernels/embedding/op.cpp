#include "lamina/kernels/embedding/op.hpp"

#include <algorithm>

#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

void check_id_dtype(std::string_view op, std::size_t operand, const Meta& ids) {
  if (ids.dtype != DType::i64) {
    fail<DTypeError>(op, "operand {}: ids are i64, not {}", operand, name_of(ids.dtype));
  }
}

}  // namespace

void check_ids(std::string_view op, std::span<const std::int64_t> ids, std::int64_t rows) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= rows) fail<IndexError>(op, "id {} at position {} is outside [0, {})", ids[i], i, rows);
  }
}

Metas Embedding::infer(const Attrs&, MetasIn in) {
  check_id_dtype(name, 0, in[0]);
  const Shape& ids = in[0].shape;
  const Shape& table = in[1].shape;
  if (table.rank() != 2) fail<ShapeError>(name, "operand 1: {} is not a table (V,D)", to_string(table));
  if (ids.rank() == kMaxRank) fail<ShapeError>(name, "operand 0: ids {} leave no room for a dim", to_string(ids));
  return {{ids.inserted(ids.rank(), table[1]), in[1].dtype}};
}

// Reads the rows picked, not the table.
Cost Embedding::cost(const Attrs&, MetasIn in, MetasIn out) {
  // The rows read; where ids repeat, each row once at most comes from memory.
  return {0, in[0].bytes() + std::min(out[0].bytes(), in[1].bytes()), out[0].bytes()};
}

Tensors Embedding::vjp(const Attrs&, const Saved& saved, TensorsIn cotangents, Needs) {
  return {Tensor(), apply<EmbeddingGrad>({saved.input_meta(1).shape[0]}, {}, cotangents[0], saved.input(0))};
}

template <class Real>
void Embedding::reference(const Attrs&, In<Real> in, Out<Real> out) {
  const std::int64_t n = in[0].shape.count(), d = in[1].shape[1];
  check_ids(name, {in[0].index, static_cast<std::size_t>(n)}, in[1].shape[0]);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) {
      const std::int64_t from = in[0].index[i] * d + j;
      if (out[0].real != nullptr) {
        out[0].real[i * d + j] = in[1].real[from];
      } else {
        out[0].index[i * d + j] = in[1].index[from];
      }
    }
  }
}

std::vector<Sample<Embedding::Attrs>> Embedding::samples() {
  auto ids = [](const Shape& shape, std::int64_t rows) {
    return SampleOperand{shape, Fill::index(0, rows), DType::i64};
  };
  return {{"one", {}, {ids(Shape{}, 3), {{3, 5}}}},
          {"batch", {}, {ids({4, 7}, 11), {{11, 9}}}},
          {"blocks", {}, {ids({2500}, 40), {{40, 17}}}},
          {"no_ids", {}, {ids({0, 3}, 4), {{4, 6}}}},
          {"no_columns", {}, {ids({3}, 4), {{4, 0}}}},
          {"integers", {}, {ids({5}, 4), {{4, 3}, Fill::index(0, 100), DType::i32}}}};
}

LAMINA_INSTANTIATE_REFERENCE(Embedding);

Metas EmbeddingGrad::infer(const Attrs& attrs, MetasIn in) {
  if (!is_floating(in[0].dtype)) {
    fail<DTypeError>(name, "operand 0: {} is not a floating dtype", name_of(in[0].dtype));
  }
  check_id_dtype(name, 1, in[1]);
  const Shape& dy = in[0].shape;
  if (dy.rank() == 0 || !(dy.removed(dy.rank() - 1) == in[1].shape)) {
    fail<ShapeError>(name, "operand 0: {} is not the ids' shape {} and a dim", to_string(dy), to_string(in[1].shape));
  }
  return {{{attrs.rows, dy.back(1)}, in[0].dtype}};
}

Cost EmbeddingGrad::cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(in[0].shape.count(), in, out); }

Tensors EmbeddingGrad::vjp(const Attrs&, const Saved&, TensorsIn, Needs) { no_gradient(name); }

template <class Real>
void EmbeddingGrad::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const std::int64_t n = in[1].shape.count(), d = in[0].shape.back(1);
  check_ids(name, {in[1].index, static_cast<std::size_t>(n)}, attrs.rows);
  for (std::int64_t i = 0; i < attrs.rows * d; ++i) out[0].real[i] = Real(0);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < d; ++j) out[0].real[in[1].index[i] * d + j] += in[0].real[i * d + j];
  }
}

std::vector<Sample<EmbeddingGrad::Attrs>> EmbeddingGrad::samples() {
  std::vector<Sample<Attrs>> samples;
  auto add = [&](std::string name, std::int64_t rows, const Shape& ids, std::int64_t d) {
    samples.push_back(
        {std::move(name), {rows}, {{ids.inserted(ids.rank(), d)}, {ids, Fill::index(0, rows), DType::i64}}});
  };
  add("one", 3, Shape{}, 5);
  add("batch", 11, {4, 7}, 9);
  add("few_rows", 3, {2500}, 18);
  add("unused_rows", 5000, {40}, 3);
  add("wide", 4, {21}, 600);
  add("no_ids", 4, {0, 3}, 6);
  add("no_columns", 4, {3}, 0);
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(EmbeddingGrad);

}  // namespace lamina
