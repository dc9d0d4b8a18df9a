#include "tests/ops/arrange.hpp"
#include "tests/ops/checks.hpp"

namespace lamina::harness {

namespace {

std::vector<const Tensor*> pointers(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> refs;
  for (const Tensor& t : tensors) refs.push_back(&t);
  return refs;
}

std::vector<Array> arrays_of(std::span<const Tensor> tensors) {
  std::vector<Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(array_of(t));
  return arrays;
}

}  // namespace

Findings check_layout(const OpInfo& op, const Variant& variant, Problems problems, const Devices& on) {
  Findings findings;
  const Device& device = on.second;
  for (const Problem& p : problems) {
    std::string arrangement_name;
    auto found = [&](std::string text) {
      findings.push_back({"layout", std::string(variant.name), p.name, arrangement_name + ": " + std::move(text)});
    };
    // Sums may be taken in another order over strided operands; what has no sum may not change a bit.
    const bool may_reorder = !variant.dense && op.tolerance.growth != Tolerance::Growth::none;
    auto run_arranged = [&](const Problem& problem, std::span<const Tensor> in, std::span<const Array> want) {
      try {
        const Tensors out = run_variant(*op.record, variant, p.attrs, pointers(in));
        const std::vector<Array> got = arrays_of({out.data(), out.size()});
        auto wrong = compare_bits(got, want);
        if (wrong && may_reorder) wrong = compare_outputs(problem, got);
        if (wrong) found(*wrong);
      } catch (const MissingKernel&) {  // a variant may refuse strides
      } catch (...) {
        found(current_exception_text());
      }
    };
    try {
      if (!supports(variant, p) || p.in.empty()) continue;
      const std::vector<Array> want = launch(variant, p, device);
      std::vector<Tensor> dense;
      for (const Array& a : p.in) dense.push_back(tensor_of(device, a));
      for (const Arrangement arrangement : kArrangements) {
        arrangement_name = name_of(arrangement);
        std::vector<Tensor> all;
        for (const Array& a : p.in) all.push_back(arrange(device, a, arrangement));
        run_arranged(p, all, want);
        for (std::size_t i = 0; i < p.in.size() && p.in.size() > 1; ++i) {
          std::vector<Tensor> alone = dense;
          alone[i] = all[i];
          arrangement_name = fmt::format("{} operand {}", name_of(arrangement), i);
          run_arranged(p, alone, want);
        }
      }
      // An operand repeated along a dim: its values change, so the dense run is taken anew.
      for (std::size_t i = 0; i < p.in.size(); ++i) {
        for (int dim = 0; dim < p.in[i].meta.shape.rank(); ++dim) {
          if (p.in[i].meta.shape[dim] < 2 || p.in[i].count() == 0) continue;
          arrangement_name = fmt::format("operand {} expanded along {}", i, dim);
          std::vector<Tensor> in = dense;
          in[i] = dense[i].slice(dim, 0, 1).expand(p.in[i].meta.shape);
          std::vector<Array> values = p.in;
          values[i] = array_of(in[i]);
          const Problem repeated = make_problem(op, p.name, p.attrs, std::move(values));
          run_arranged(repeated, in, launch(variant, repeated, device));
        }
      }
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
