#include <cmath>
#include <set>

#include "tests/ops/checks.hpp"
#include "tests/ops/gradient.hpp"

namespace lamina::harness {

namespace {

using Shapes = std::vector<Shape>;

bool has_empty(const Shapes& shapes) {
  for (const Shape& s : shapes) {
    if (s.count() == 0) return true;
  }
  return false;
}

// The sample's shapes with extents turned to 0: all that are equal to one value together, and each alone.
std::vector<Shapes> emptied(const OpInfo::Case& sample) {
  Shapes original;
  for (const SampleOperand& o : sample.inputs) original.push_back(o.shape);
  std::vector<Shapes> variations;
  if (has_empty(original)) variations.push_back(original);
  std::set<std::int64_t> extents;
  for (const Shape& s : original) extents.insert(s.begin(), s.end());
  extents.erase(0);
  auto indexes_into = [&](std::int64_t extent) {
    for (const SampleOperand& o : sample.inputs) {
      if (o.fill.kind == Fill::Kind::index && static_cast<std::int64_t>(o.fill.hi) == extent) return true;
    }
    return false;
  };
  for (const std::int64_t extent : extents) {
    if (indexes_into(extent)) continue;  // indices into nothing: see errors
    Shapes together = original;
    for (std::size_t i = 0; i < original.size(); ++i) {
      for (int d = 0; d < original[i].rank(); ++d) {
        if (original[i][d] != extent) continue;
        together[i] = together[i].with(d, 0);
        Shapes alone = original;
        alone[i] = alone[i].with(d, 0);
        variations.push_back(std::move(alone));
      }
    }
    variations.push_back(std::move(together));
  }
  return variations;
}

std::string describe(const OpInfo::Case& sample, const Shapes& shapes, DType dtype) {
  std::string text = fmt::format("{} as", sample.name);
  for (const Shape& s : shapes) text += fmt::format(" {}", to_string(s));
  return fmt::format("{} {}", text, name_of(dtype));
}

template <class Found>
void check_gradients(const OpInfo& op, const Problem& p, const Devices& on, Found&& found) {
  const Backward backward(op, on.first, p);
  bool all_empty = true;
  for (const std::size_t o : backward.floating_outputs()) all_empty = all_empty && p.out[o].shape.count() == 0;
  const std::uint64_t needs = backward.floating_inputs();
  if (backward.floating_outputs().empty() || needs == 0) return;
  if (!all_empty) {
    for (const Finding& f : check_gradient_of(op, p, on)) found(f.text);
    return;
  }
  const Reach reach = backward.reach();
  for (const std::string& fault : reach.faults) found(fault);
  const Tensors gradients = backward.vjp(backward.cotangents(reach.outputs), reach.operands);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    const Array gradient = array_of(gradients[i]);
    for (const double v : real_values(gradient)) {
      if (v == 0) continue;
      found(fmt::format("the gradient of operand {} has a {} though no output has an element", i, v));
      break;
    }
  }
}

}  // namespace

Findings check_empty(const OpInfo& op, Variants variants, const Devices& on) {
  Findings findings;
  const bool differentiable = has_gradient(op);
  std::set<std::string> seen;
  for (const OpInfo::Case& sample : op.samples) {
    std::int64_t elements = 0;
    for (const SampleOperand& o : sample.inputs) elements += o.shape.count();
    if (elements > 20000) continue;
    for (const Shapes& shapes : emptied(sample)) {
      OpInfo::Case variation{sample.name, sample.attrs, sample.inputs};
      for (std::size_t i = 0; i < shapes.size(); ++i) variation.inputs[i].shape = shapes[i];
      for (const DType dtype : {DType::f32, DType::f64}) {
        const std::string name = describe(sample, shapes, dtype);
        if (!seen.insert(name).second) continue;
        auto found = [&](std::string text) {
          findings.push_back({"empty", std::string(op.record->name), name, std::move(text)});
        };
        try {
          std::optional<Problem> p;
          try {
            p = make_problem(op, variation, dtype);
          } catch (const Error&) {  // the op refuses: as good
          }
          if (!p) continue;
          for (const Variant* v : variants) {
            if (!runs_here(v->isa) || !supports(*v, *p)) continue;
            const std::vector<Array> out = launch(*v, *p, on.second);
            if (const auto wrong = compare_outputs(*p, out)) found(fmt::format("{}: {}", v->name, *wrong));
          }
          if (differentiable) check_gradients(op, *p, on, found);
        } catch (const IndexError&) {
        } catch (const MissingKernel&) {
          if (!on.partial) found(current_exception_text());
        } catch (...) {
          found(current_exception_text());
        }
      }
    }
  }
  return findings;
}

}  // namespace lamina::harness
