// What a record says that no run of a kernel would show to be wrong.
#include <cstring>
#include <map>
#include <set>

#include "tests/ops/checks.hpp"
#include "tests/ops/gradient.hpp"

namespace lamina::harness {

namespace {

constexpr double kMaxUlps = 128;  // what more can hide is no rounding

// What `keep` has, one tensor at a time.
std::vector<Keep> single(Keep keep) {
  std::vector<Keep> all;
  for (int i = 0; i < 32; ++i) {
    if ((keep.inputs >> i & 1u) != 0) all.push_back(keep_inputs({i}));
    if ((keep.outputs >> i & 1u) != 0) all.push_back(keep_outputs({i}));
  }
  return all;
}

std::string name_of(Keep keep) {
  for (int i = 0; i < 32; ++i) {
    if ((keep.inputs >> i & 1u) != 0) return fmt::format("input {}", i);
    if ((keep.outputs >> i & 1u) != 0) return fmt::format("output {}", i);
  }
  return "nothing";
}

std::vector<Array> arrays_of(const Tensors& tensors) {
  std::vector<Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(t.defined() ? array_of(t) : Array());
  return arrays;
}

// Whether the gradients that are needed depend on the elements of the tensor; shapes are in the metas. By each output's
// cotangent alone: some outputs take none.
bool reads(const Backward& backward, std::uint64_t needs, Keep one) {
  for (const std::size_t o : backward.floating_outputs()) {
    const std::vector<Tensor> cotangents = backward.cotangents(std::uint64_t{1} << o);
    Tensors with;
    try {
      with = backward.vjp(cotangents, needs);
    } catch (const TapeError&) {
      continue;
    }
    try {
      if (arrays_of(backward.vjp(cotangents, needs, one)) != arrays_of(with)) return true;
    } catch (...) {
      return true;
    }
  }
  return false;
}

}  // namespace

Findings check_samples(const OpInfo& op, Problems problems) {
  Findings findings;
  auto found = [&](std::string text) {
    findings.push_back({"samples", std::string(op.record->name), "all", std::move(text)});
  };
  if (op.samples.empty()) return found("there are none"), findings;
  bool operands = false, small = false, floating = false, nonzero = false;
  std::set<std::string> names;
  for (const OpInfo::Case& sample : op.samples) {
    if (!names.insert(sample.name).second) found(fmt::format("two samples are named {}", sample.name));
    std::int64_t elements = 0;
    bool extent = false;
    for (const SampleOperand& o : sample.inputs) {
      operands = true;
      elements += o.shape.count();
      for (const std::int64_t e : o.shape) extent = extent || e > 0;
      floating = floating || is_floating(o.dtype);
      nonzero = nonzero || (is_floating(o.dtype) && o.fill.kind != Fill::Kind::zeros && o.shape.count() > 0);
    }
    small = small || (extent && elements <= 5000);
  }
  bool several = false;
  for (const Problem& p : problems) {
    std::int64_t elements = 0;
    for (const Array& a : p.in) elements += a.count();
    for (const Meta& m : p.out) elements += m.shape.count();
    several = several || elements > 64;
  }
  if (!several) found("none has more than 64 elements: no kernel gets past its first lanes");
  if (!operands) return findings;
  if (!small) found("none has an operand with a dim and at most 5000 elements: the checks of shapes vary such");
  if (floating && !nonzero) found("all floating operands are zeros");
  return findings;
}

Findings check_record(const OpInfo& op, Problems problems, Variants variants) {
  Findings findings;
  std::string subject(op.record->name), problem = "all";
  auto found = [&](std::string text) { findings.push_back({"record", subject, problem, std::move(text)}); };
  if (!(op.tolerance.ulps >= 0 && op.tolerance.ulps <= kMaxUlps)) {
    found(fmt::format("a tolerance of {} ulps; at most {}", op.tolerance.ulps, kMaxUlps));
  }
  std::set<std::string_view> names;
  for (const Variant* v : variants) {
    if (!v->name.starts_with(fmt::format("{}.", op.record->name))) found(fmt::format("has a variant {}", v->name));
    if (!names.insert(v->name).second) found(fmt::format("two variants are named {}", v->name));
  }
  bool kernels = false;
  std::map<std::string_view, std::set<Isa>> isas;  // of variants whose name ends in their instruction set
  std::set<std::string_view> algorithms;
  for (const Variant* v : variants) {
    if (is_reference(*v)) continue;
    for (const Problem& p : problems) kernels = kernels || (p.name.ends_with(" f32") && supports(*v, p));
    const std::string_view isa = lamina::name_of(v->isa);
    if (!v->name.ends_with(isa)) continue;
    std::string_view stem = v->name.substr(0, v->name.size() - isa.size() - 1);
    isas[stem].insert(v->isa);
    algorithms.insert(stem);
  }
  if (!kernels) found("no variant but the reference takes an f32 sample");
  for (const auto& [stem, has] : isas) {
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::wide}) {
      if (!has.contains(isa)) found(fmt::format("{} has no variant for {}", stem, lamina::name_of(isa)));
    }
    for (const auto& [one, other] : {std::pair{".bf16", ".f16"}, std::pair{".f16", ".bf16"}}) {
      if (!stem.ends_with(one)) continue;
      const std::string partner = fmt::format("{}{}", stem.substr(0, stem.size() - std::strlen(one)), other);
      if (!algorithms.contains(partner)) found(fmt::format("{} has no partner {}", stem, partner));
    }
  }
  for (const Problem& p : problems) {
    problem = p.name;
    if (op.outputs >= 0 && static_cast<std::size_t>(op.outputs) != p.out.size()) {
      found(fmt::format("outputs = {}, the shape rule gives {}", op.outputs, p.out.size()));
      break;
    }
  }
  return findings;
}

Findings check_saves(const OpInfo& op) {
  Findings findings;
  const Saves& saves = op.record->saves;
  if (!has_gradient(op)) {
    Keep all;
    for (const Keep keep : saves.for_operand) all = all | keep;
    if (all.inputs != 0 || all.outputs != 0) {
      findings.push_back({"saves", std::string(op.record->name), "all", "keeps tensors, but has no gradient"});
    }
    return findings;
  }
  // By operand gradient; all at once where the record keeps for all together.
  std::map<std::size_t, std::set<std::string>> kept, read;
  for (const OpInfo::Case& sample : op.samples) {
    std::int64_t elements = 0;
    for (const SampleOperand& o : sample.inputs) elements += o.shape.count();
    if (elements > 20000) continue;
    for (const DType dtype : {DType::f64, DType::f32}) {
      try {
        const auto p = make_problem(op, sample, dtype);
        if (!p) continue;
        const Backward backward(op, Devices::cpu().first, *p);
        for (std::size_t i = 0; i < p->in.size(); ++i) {
          const std::uint64_t needs = saves.unsplit ? backward.floating_inputs() : std::uint64_t{1} << i;
          if ((backward.floating_inputs() & needs) != needs || needs == 0) continue;
          const std::size_t of = saves.unsplit ? 0 : i;
          for (const Keep one : single(backward.kept(needs))) {
            if (read[of].contains(name_of(one))) continue;
            kept[of].insert(name_of(one));
            if (reads(backward, needs, one)) read[of].insert(name_of(one));
          }
        }
      } catch (...) {  // reported by the gradient check
      }
    }
  }
  for (const auto& [operand, names] : kept) {
    for (const std::string& name : names) {
      if (read[operand].contains(name)) continue;
      findings.push_back({"saves", std::string(op.record->name), "all",
                          fmt::format("{} is kept for {}, which no sample needs it for", name,
                                      saves.unsplit ? std::string("the gradients")
                                                    : fmt::format("the gradient of operand {}", operand))});
    }
  }
  return findings;
}

}  // namespace lamina::harness
