#include "tests/ops/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "lamina/core/rng.hpp"

namespace lamina::harness {

namespace {
constexpr std::size_t kBand = 32;
constexpr std::int64_t kUnwritten = std::numeric_limits<std::int64_t>::min();
}  // namespace

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* text = std::getenv("LAMINA_SOAK");
    return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 10) : 1u;
  }();
  return value;
}

std::vector<double> sample_values(std::string_view op, std::string_view sample, std::size_t operand,
                                  const SampleOperand& spec) {
  const Rng rng(seed(), hash_bytes(std::as_bytes(std::span(op)), hash_bytes(std::as_bytes(std::span(sample)))),
                operand);
  const std::int64_t count = spec.shape.count();
  std::vector<double> values(static_cast<std::size_t>(count));
  const Fill& fill = spec.fill;
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (fill.kind) {
      case Fill::Kind::normal: values[i] = fill.hi * rng.normal(0, i); break;
      case Fill::Kind::uniform:
        values[i] = fill.lo + (fill.hi - fill.lo) * static_cast<double>(rng.uniform(0, i));
        break;
      case Fill::Kind::distinct: values[i] = 0.0625 * (static_cast<double>(i) - static_cast<double>(count / 2)); break;
      case Fill::Kind::index:
        values[i] = fill.lo + static_cast<double>(rng.below(static_cast<std::uint64_t>(fill.hi - fill.lo), 0, i));
        break;
      case Fill::Kind::zeros: values[i] = 0; break;
    }
  }
  if (fill.kind == Fill::Kind::distinct) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[rng.below(i, 1, i)]);
  }
  if (fill.gap > 0) {
    for (double& v : values) {
      const double distance = v - fill.kink;
      if (std::abs(distance) < fill.gap) v = fill.kink + (distance < 0 ? distance - fill.gap : distance + fill.gap);
    }
  }
  return values;
}

std::vector<Meta> Problem::in_metas() const {
  std::vector<Meta> metas;
  for (const Array& a : in) metas.push_back(a.meta);
  return metas;
}

double Problem::flops_per_element() const {
  std::int64_t elements = 0;
  for (const Meta& m : out) elements += m.shape.count();
  return elements == 0 ? 1 : std::max(1.0, static_cast<double>(cost.flops) / static_cast<double>(elements));
}

const Values& Problem::expected() const {
  if (!expected_) {
    std::vector<std::vector<double>> real;
    std::vector<std::vector<std::int64_t>> index;
    for (const Array& a : in) {
      const bool floating = is_floating(a.meta.dtype);
      real.push_back(floating ? real_values(a) : std::vector<double>{});
      index.push_back(floating ? std::vector<std::int64_t>{} : index_values(a));
    }
    expected_ = evaluate(*op, attrs, in_metas(), real, index, out);
  }
  return *expected_;
}

Problem make_problem(const OpInfo& op, std::string name, const void* attrs, std::vector<Array> in) {
  Problem p;
  p.name = std::move(name);
  p.op = &op;
  p.attrs = attrs;
  p.in = std::move(in);
  const std::vector<Meta> metas = p.in_metas();
  p.out = op.record->infer(attrs, metas);
  p.cost = op.record->cost(attrs, metas, p.out);
  return p;
}

std::optional<Problem> make_problem(const OpInfo& op, const OpInfo::Case& sample, DType floating) {
  bool changes = floating == DType::f32;
  std::vector<Meta> metas;
  for (const SampleOperand& o : sample.inputs) {
    changes = changes || o.dtype == DType::f32;
    const DType changed = o.accumulated ? accumulator_of(floating) : floating;
    metas.push_back({o.shape, o.dtype == DType::f32 ? changed : o.dtype});
  }
  if (!changes) return {};
  if (floating != DType::f32) {
    try {
      op.record->infer(sample.attrs.get(), metas);
    } catch (const Error&) {
      return {};
    }
  }
  std::vector<Array> in;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const SampleOperand& o = sample.inputs[i];
    in.push_back(array_of(metas[i], std::span<const double>(sample_values(op.record->name, sample.name, i, o))));
  }
  return make_problem(op, fmt::format("{} {}", sample.name, name_of(floating)), sample.attrs.get(), std::move(in));
}

std::vector<Problem> problems_of(const OpInfo& op) {
  std::vector<Problem> problems;
  for (const OpInfo::Case& sample : op.samples) {
    for (const DType floating : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
      if (auto problem = make_problem(op, sample, floating)) problems.push_back(std::move(*problem));
    }
  }
  return problems;
}

Values evaluate(const OpInfo& op, const void* attrs, std::span<const Meta> in_metas,
                std::span<const std::vector<double>> real, std::span<const std::vector<std::int64_t>> index,
                std::span<const Meta> out_metas) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::vector<double>> banded_real;
  std::vector<std::vector<std::int64_t>> banded_index;
  std::vector<RefIn<double>> in;
  for (std::size_t i = 0; i < in_metas.size(); ++i) {
    const auto count = static_cast<std::size_t>(in_metas[i].shape.count());
    const bool floating = is_floating(in_metas[i].dtype);
    banded_real.emplace_back(floating ? count + 2 * kBand : 0, nan);
    banded_index.emplace_back(floating ? 0 : count + 2 * kBand, -1);
    if (floating) {
      std::copy(real[i].begin(), real[i].end(), banded_real[i].begin() + kBand);
    } else {
      std::copy(index[i].begin(), index[i].end(), banded_index[i].begin() + kBand);
    }
    in.push_back({in_metas[i].shape, floating ? banded_real[i].data() + kBand : nullptr,
                  floating ? nullptr : banded_index[i].data() + kBand});
  }
  Values values;
  std::vector<RefOut<double>> out;
  for (const Meta& m : out_metas) {
    const auto count = static_cast<std::size_t>(m.shape.count());
    const bool floating = is_floating(m.dtype);
    values.real.emplace_back(floating ? count : 0, nan);
    values.index.emplace_back(floating ? 0 : count, kUnwritten);
  }
  for (std::size_t o = 0; o < out_metas.size(); ++o) {
    const bool floating = is_floating(out_metas[o].dtype);
    out.push_back(
        {out_metas[o].shape, floating ? values.real[o].data() : nullptr, floating ? nullptr : values.index[o].data()});
  }
  op.reference(attrs, in, out);
  return values;
}

}  // namespace lamina::harness
