#include "lamina/kernels/matmul/op.hpp"

#include "lamina/kernels/broadcast.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/elementwise.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

Shape leading(const Shape& shape) { return Shape(shape.dims().first(static_cast<std::size_t>(shape.rank() - 2))); }

// (..., R, C) as (... R, C).
Tensor as_one_matrix(const Tensor& t) {
  const std::int64_t columns = t.shape().back(1);
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < t.shape().rank(); ++i) rows *= t.shape()[i];
  return contiguous(t).view(Shape{rows, columns});
}

}  // namespace

Metas Matmul::infer(const Attrs& attrs, MetasIn in) {
  const Shape &a = in[0].shape, &b = in[1].shape;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!is_floating(in[i].dtype)) {
      fail<DTypeError>(name, "operand {}: {} is not a floating dtype", i, name_of(in[i].dtype));
    }
    if (in[i].shape.rank() < 2) {
      fail<ShapeError>(name, "operand {}: {} has fewer than 2 dims", i, to_string(in[i].shape));
    }
  }
  if (in[1].dtype != in[0].dtype) {
    fail<DTypeError>(name, "operand 1: {} does not match {} of operand 0", name_of(in[1].dtype), name_of(in[0].dtype));
  }
  const std::int64_t inner_a = a.back(attrs.transpose_a ? 2 : 1), inner_b = b.back(attrs.transpose_b ? 1 : 2);
  if (inner_a != inner_b) {
    fail<ShapeError>(name, "operand 1: inner dimension {} does not match {}; shapes {}{} x {}{}", inner_b, inner_a,
                     to_string(a), attrs.transpose_a ? "^T" : "", to_string(b), attrs.transpose_b ? "^T" : "");
  }
  const std::int64_t rows = a.back(attrs.transpose_a ? 1 : 2), columns = b.back(attrs.transpose_b ? 2 : 1);
  if (a.rank() == 2 && b.rank() == 2) return {{Shape{rows, columns}, in[0].dtype}};
  Shape shape;
  if (!broadcast_shapes(leading(a), leading(b), shape)) {
    fail<ShapeError>(name, "operand 1: leading dims of {} do not broadcast with those of {}", to_string(b),
                     to_string(a));
  }
  shape = shape.inserted(shape.rank(), rows);
  return {{shape.inserted(shape.rank(), columns), in[0].dtype}};
}

Cost Matmul::cost(const Attrs& attrs, MetasIn in, MetasIn out) {
  return stream_cost(2 * out[0].shape.count() * in[0].shape.back(attrs.transpose_a ? 2 : 1), in, out);
}

Tensors Matmul::vjp(const Attrs& attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
  const Tensor& dc = cotangents[0];
  const bool ta = attrs.transpose_a, tb = attrs.transpose_b;
  Tensors gradients(2);
  if (needs[0]) {
    const Tensor& b = saved.input(1);
    Tensor da = ta ? matmul(b, dc, {tb, true}) : matmul(dc, b, {false, !tb});
    gradients[0] = sum_to(std::move(da), saved.input_meta(0).shape);
  }
  if (needs[1]) {
    const Tensor& a = saved.input(0);
    const Shape& shape = saved.input_meta(1).shape;
    if (shape.rank() == 2 && !ta && a.shape().rank() > 2) {
      // One product over all rows instead of one a leading index and their sum.
      const Tensor rows = as_one_matrix(a), d_rows = as_one_matrix(dc);
      gradients[1] = tb ? matmul(d_rows, rows, {true, false}) : matmul(rows, d_rows, {true, false});
    } else {
      gradients[1] = sum_to(tb ? matmul(dc, a, {true, ta}) : matmul(a, dc, {!ta, false}), shape);
    }
  }
  return gradients;
}

template <class Real>
void Matmul::reference(const Attrs& attrs, In<Real> in, Out<Real> out) {
  const Shape& shape = out[0].shape;
  const std::int64_t m = shape.back(2), n = shape.back(1), k = in[0].shape.back(attrs.transpose_a ? 2 : 1);
  const Shape batches = leading(shape), batches_a = leading(in[0].shape), batches_b = leading(in[1].shape);
  for (std::int64_t batch = 0; batch < batches.count(); ++batch) {
    const Real* a = in[0].real + broadcast_index(batch, batches, batches_a) * m * k;
    const Real* b = in[1].real + broadcast_index(batch, batches, batches_b) * k * n;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        Real sum(0);
        for (std::int64_t x = 0; x < k; ++x) {
          sum += a[attrs.transpose_a ? x * m + i : i * k + x] * b[attrs.transpose_b ? j * k + x : x * n + j];
        }
        out[0].real[(batch * m + i) * n + j] = sum;
      }
    }
  }
}

std::vector<Sample<Matmul::Attrs>> Matmul::samples() {
  std::vector<Sample<Attrs>> samples;
  for (const Attrs attrs : {Attrs{false, false}, {false, true}, {true, false}, {true, true}}) {
    auto add = [&](std::string label, const Shape& lead_a, const Shape& lead_b, std::int64_t m, std::int64_t n,
                   std::int64_t k) {
      auto operand = [](const Shape& lead, std::int64_t rows, std::int64_t columns, bool transposed) {
        const Shape shape = lead.inserted(lead.rank(), transposed ? columns : rows);
        return SampleOperand{shape.inserted(shape.rank(), transposed ? rows : columns)};
      };
      label += attrs.transpose_a ? "_t" : "_n";
      label += attrs.transpose_b ? "t" : "n";
      samples.push_back(
          {label, attrs, {operand(lead_a, m, k, attrs.transpose_a), operand(lead_b, k, n, attrs.transpose_b)}});
    };
    add("one", {}, {}, 1, 1, 1);
    add("empty", {}, {}, 0, 3, 2);
    add("no_inner", {}, {}, 3, 4, 0);
    add("odd", {}, {}, 7, 5, 3);
    add("row", {}, {}, 1, 37, 19);
    add("column", {}, {}, 37, 1, 19);
    add("tall", {}, {}, 67, 9, 5);
    add("square", {}, {}, 33, 34, 35);
    add("batched", {3}, {3}, 5, 6, 4);
    add("broadcast", {2, 1}, {3}, 4, 3, 5);
    add("weights", {2, 3}, {}, 5, 7, 4);
  }
  samples.push_back({"rows_blocks", {}, {{{190, 3}}, {{3, 70}}}});
  samples.push_back({"inner_blocks", {}, {{{15, 530}}, {{530, 35}}}});
  samples.push_back({"inner_blocks_nt", {.transpose_b = true}, {{{29, 270}}, {{70, 270}}}});
  samples.push_back({"row_blocks", {}, {{{1, 300}}, {{300, 70}}}});
  samples.push_back({"column_blocks", {}, {{{70, 300}}, {{300, 1}}}});
  return samples;
}

LAMINA_INSTANTIATE_REFERENCE(Matmul);

}  // namespace lamina
