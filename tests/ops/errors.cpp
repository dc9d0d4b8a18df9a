#include <deque>

#include "tests/ops/checks.hpp"
#include "tests/ops/memory.hpp"

namespace lamina::harness {

namespace {

struct Mutation {
  std::string name;
  std::vector<Meta> metas;
};

std::vector<Mutation> mutations_of(const std::vector<Meta>& metas) {
  std::vector<Mutation> mutations;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const Shape shape = metas[i].shape;
    auto add = [&](std::string what, const Meta& changed) {
      std::vector<Meta> all = metas;
      all[i] = changed;
      mutations.push_back({fmt::format("operand {} {}", i, what), std::move(all)});
    };
    for (const DType dtype : {DType::f64, DType::bf16, DType::i32, DType::i64, DType::u8, DType::boolean, DType::f32}) {
      if (dtype != metas[i].dtype) add(fmt::format("as {}", name_of(dtype)), {shape, dtype});
    }
    auto reshape = [&](const Shape& s) { add(fmt::format("as {}", to_string(s)), {s, metas[i].dtype}); };
    for (int d = 0; d < shape.rank(); ++d) {
      reshape(shape.with(d, shape[d] + 1));
      reshape(shape.with(d, 2 * shape[d] + 2));
      if (shape[d] > 0) reshape(shape.with(d, shape[d] - 1));
      if (shape[d] > 1) reshape(shape.with(d, 1));
      reshape(shape.removed(d));
    }
    if (shape.rank() < kMaxRank) {
      reshape(shape.inserted(0, 1));
      reshape(shape.inserted(0, 2));
      reshape(shape.inserted(shape.rank(), 2));
    }
    if (shape.rank() > 1) reshape(Shape{});
  }
  return mutations;
}

std::vector<Array> values_for(const OpInfo& op, const OpInfo::Case& sample, const std::vector<Meta>& metas) {
  std::vector<Array> in;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    SampleOperand spec = sample.inputs[i];
    spec.shape = metas[i].shape;
    in.push_back(array_of(metas[i], std::span<const double>(sample_values(op.record->name, sample.name, i, spec))));
  }
  return in;
}

// On operands that end at a page nobody may touch.
bool leaves_pages(const Variant& v, const Problem& p, const Device& device) {
  std::deque<Paged> ins, outs;
  std::vector<std::byte*> in, out;
  for (const Array& a : p.in) in.push_back(ins.emplace_back(a, Paged::At::back).data());
  for (const Meta& m : p.out) out.push_back(outs.emplace_back(Array(m, 0xFF), Paged::At::back).data());
  return faults([&] { launch_at(v, p, in, out, device); });
}

// Where there are no such pages: writes show, between bands.
bool leaves_bands(const Variant& v, const Problem& p, const Device& device) {
  std::deque<Banded> all;
  std::vector<std::byte*> in, out;
  for (const Array& a : p.in) in.push_back(all.emplace_back(device, a, 0xA5).data());
  for (const Meta& m : p.out) out.push_back(all.emplace_back(device, Array(m, 0xFF), 0xA5).data());
  launch_at(v, p, in, out, device);
  for (const Banded& b : all) {
    if (b.stray_write()) return true;
  }
  return false;
}

// A typed error is fine.
template <class Found>
void run_guarded(const Variant& v, const Problem& p, const Device& device, Found&& found) {
  try {
    if (!runs_here(v.isa) || !supports(v, p)) return;
    if (device.host_accessible() ? leaves_pages(v, p, device) : leaves_bands(v, p, device)) {
      found(fmt::format("{}: touches memory outside its operands", v.name));
    }
  } catch (const Error&) {
  } catch (...) {
    found(fmt::format("{}: {}", v.name, current_exception_text()));
  }
}

template <class Found>
void check_mutation(const OpInfo& op, const OpInfo::Case& sample, const Mutation& mutation, Variants variants,
                    const Device& device, Found&& found) {
  std::optional<Problem> p;
  try {
    p = make_problem(op, mutation.name, sample.attrs.get(), values_for(op, sample, mutation.metas));
  } catch (const Error&) {
    return;
  }
  std::int64_t bytes = 0;
  for (const Meta& m : p->out) bytes += m.bytes();
  if (bytes > (1 << 24)) return found(fmt::format("accepted, with outputs of {} bytes", bytes));
  for (const Variant* v : variants) run_guarded(*v, *p, device, found);
}

// Indices outside their range, in every position where a sample has some.
template <class Found>
void check_indices(const OpInfo& op, const OpInfo::Case& sample, const std::vector<Meta>& metas, Variants variants,
                   const Device& device, Found&& found) {
  for (std::size_t i = 0; i < metas.size(); ++i) {
    if (is_floating(metas[i].dtype) || sample.inputs[i].fill.kind != Fill::Kind::index || metas[i].shape.count() == 0) {
      continue;
    }
    const auto hi = static_cast<std::int64_t>(sample.inputs[i].fill.hi);
    for (const std::int64_t bad : {std::int64_t{-1}, hi, hi + 10000019, std::int64_t{-2147483648}}) {
      std::vector<Array> in = values_for(op, sample, metas);
      std::vector<std::int64_t> values = index_values(in[i]);
      values[values.size() / 2] = bad;
      in[i] = array_of(metas[i], std::span<const std::int64_t>(values));
      const Problem p = make_problem(op, sample.name, sample.attrs.get(), std::move(in));
      for (const Variant* v : variants) {
        run_guarded(*v, p, device,
                    [&](std::string text) { found(fmt::format("operand {} with index {}: {}", i, bad, text)); });
      }
    }
  }
}

// Through the dispatcher: what no kernel may get to see.
template <class Found>
void check_operands(const OpInfo& op, const OpInfo::Case& sample, const std::vector<Meta>& metas, const Devices& on,
                    Found&& found) {
  const Device& device = on.first;
  const Device& other = on.second;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    std::vector<Tensor> in;
    for (const Array& a : values_for(op, sample, metas)) in.push_back(tensor_of(device, a));
    for (const bool undefined : {true, false}) {
      if (!undefined && metas.size() < 2) continue;
      in[i] = undefined ? Tensor() : Tensor::zeros(other, metas[i].shape, metas[i].dtype);
      std::vector<const Tensor*> refs;
      for (const Tensor& t : in) refs.push_back(&t);
      try {
        run(*op.record, sample.attrs.get(), refs);
        found(fmt::format("operand {} {}: no DeviceError", i, undefined ? "undefined" : "on another device"));
      } catch (const DeviceError&) {
      }
    }
  }
}

}  // namespace

Findings check_errors(const OpInfo& op, Variants variants, const Devices& on) {
  Findings findings;
  for (const OpInfo::Case& sample : op.samples) {
    std::vector<Meta> metas;
    std::int64_t elements = 0;
    for (const SampleOperand& o : sample.inputs) {
      metas.push_back({o.shape, o.dtype});
      elements += o.shape.count();
    }
    if (elements > 5000) continue;
    std::string name = sample.name;
    auto found = [&](std::string text) {
      findings.push_back({"errors", std::string(op.record->name), name, std::move(text)});
    };
    try {
      check_operands(op, sample, metas, on, found);
      check_indices(op, sample, metas, variants, on.first, found);
      for (const Mutation& mutation : mutations_of(metas)) {
        name = sample.name + ": " + mutation.name;
        check_mutation(op, sample, mutation, variants, on.first, found);
      }
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
