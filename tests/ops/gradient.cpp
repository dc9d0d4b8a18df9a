// The gradient check. In float64, with nothing but the tensors the record says it keeps:
//   which outputs' cotangents vjp takes: it may refuse some by name, and must then work with the others;
//   vjp with random cotangents on all of them, and on each alone, against central differences of the reference (all
//   elements of small operands, a sample of large ones, and a random direction through everything);
//   each operand alone gives the bits it gives among all; strided operands and cotangents give the same bits.
// In f32, bf16 and f16: vjp against its own float64 result on the same inputs.
#include "tests/ops/gradient.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lamina/core/rng.hpp"

namespace lamina::harness {

namespace {

constexpr std::size_t kAllUpTo = 48;  // elements of an operand that are all differentiated
constexpr double kFlopBudget = 3e7;   // of reference evaluations, an operand

// The op as a function of the values of its floating operands, weighted by the cotangents of `which` outputs.
class Function {
 public:
  Function(const OpInfo& op, const Problem& problem, std::uint64_t which)
      : op_(op), problem_(problem), metas_(problem.in_metas()) {
    for (const Array& a : problem.in) {
      const bool floating = is_floating(a.meta.dtype);
      x_.push_back(floating ? real_values(a) : std::vector<double>{});
      index_.push_back(floating ? std::vector<std::int64_t>{} : index_values(a));
    }
    for (std::size_t o = 0; o < problem.out.size(); ++o) {
      const bool used = is_floating(problem.out[o].dtype) && ((which >> o) & 1u) != 0;
      weights_.push_back(used ? Backward::cotangent_values(op, o, problem.out[o].shape.count())
                              : std::vector<double>{});
      if (used) weights_[o] = real_values(array_of(problem.out[o], std::span<const double>(weights_[o])));
    }
  }

  /// The derivative along `direction` (operand, element, component), by differences of fourth order, and the
  /// rounding error to expect in it.
  struct Step {
    std::size_t operand, element;
    double by;
  };
  struct Derivative {
    double value, noise;
  };
  Derivative along(std::span<const Step> direction, double h) {
    auto at = [&](double t) {
      std::vector<double> before;
      for (const Step& s : direction) {
        before.push_back(x_[s.operand][s.element]);
        x_[s.operand][s.element] += t * s.by;
      }
      Values values = evaluate(op_, problem_.attrs, metas_, x_, index_, problem_.out);
      for (std::size_t i = direction.size(); i-- > 0;) x_[direction[i].operand][direction[i].element] = before[i];
      return values;
    };
    const Values p1 = at(h), m1 = at(-h), p2 = at(2 * h), m2 = at(-2 * h);
    Derivative d{0, 0};
    for (std::size_t o = 0; o < weights_.size(); ++o) {
      // Roundings of the operations behind an output: of both signs.
      const double operations =
          static_cast<double>(problem_.cost.flops) / std::max(1.0, static_cast<double>(weights_[o].size()));
      const double unit = 0x1p-52 / h * std::sqrt(std::max(1.0, operations));
      for (std::size_t i = 0; i < weights_[o].size(); ++i) {
        const double near = p1.real[o][i] - m1.real[o][i], far = p2.real[o][i] - m2.real[o][i];
        if (near == 0 && far == 0) continue;
        d.value += weights_[o][i] * (8 * near - far) / (12 * h);
        d.noise += std::abs(weights_[o][i]) * (std::abs(p1.real[o][i]) + std::abs(m1.real[o][i])) * unit;
      }
    }
    return d;
  }
  double step(std::size_t operand, std::size_t element) const {
    return std::min(1e-4 * std::max(1.0, std::abs(x_[operand][element])), 1e-3);
  }
  const std::vector<double>& values(std::size_t operand) const { return x_[operand]; }

 private:
  const OpInfo& op_;
  const Problem& problem_;
  std::vector<Meta> metas_;
  std::vector<std::vector<double>> x_, weights_;
  std::vector<std::vector<std::int64_t>> index_;
};

double root_mean_square(std::span<const double> values) {
  double squares = 0;
  for (const double v : values) squares += v * v;
  return values.empty() ? 0 : std::sqrt(squares / static_cast<double>(values.size()));
}

// The coarsest of the dtypes in play: explicit 16-bit operands round gradients.
double coarsest(const Problem& p) {
  double unit = half_ulp(DType::f64);
  for (const Array& a : p.in) unit = is_floating(a.meta.dtype) ? std::max(unit, half_ulp(a.meta.dtype)) : unit;
  for (const Meta& m : p.out) unit = is_floating(m.dtype) ? std::max(unit, half_ulp(m.dtype)) : unit;
  return unit;
}

std::vector<Array> arrays_of(const Tensors& tensors) {
  std::vector<Array> arrays;
  for (const Tensor& t : tensors) arrays.push_back(t.defined() ? array_of(t) : Array());
  return arrays;
}

// Returns how many elements of operands it differentiated by.
template <class Found>
std::size_t compare_differences(const OpInfo& op, const Problem& p, std::uint64_t which, std::uint64_t needs,
                                std::span<const Array> gradients, Found&& found) {
  Function function(op, p, which);
  const double relative = std::max(1e-7, 8 * coarsest(p));
  const double flops = std::max(1.0, static_cast<double>(p.cost.flops));
  const Rng rng(seed(), 77);
  std::vector<Function::Step> everywhere;
  double along_everything = 0, size = 0;
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (((needs >> i) & 1u) == 0) continue;
    const auto count = static_cast<std::size_t>(p.in[i].count());
    const bool given = !gradients[i].bytes.empty();
    const std::vector<double> g = given ? real_values(gradients[i]) : std::vector<double>(count, 0.0);
    const double scale = root_mean_square(g);
    std::size_t probes = count <= kAllUpTo ? count : 40;
    probes = std::min(probes, std::max<std::size_t>(3, static_cast<std::size_t>(kFlopBudget / (4 * flops))));
    for (std::size_t k = 0; k < probes; ++k) {
      std::size_t element = k;
      if (probes < count) element = k == 0 ? 0 : k == 1 ? count - 1 : rng.below(count, i, k);
      const Function::Step step{i, element, 1};
      const auto d = function.along({&step, 1}, function.step(i, element));
      const double allowed = relative * std::max(std::abs(g[element]), scale) + 8 * d.noise + 1e-12;
      if (std::abs(d.value - g[element]) <= allowed) continue;
      found(fmt::format("operand {}: element {} (value {:.6g}): vjp {:.9g}, differences {:.9g}{}", i,
                        index_string(p.in[i].meta.shape, static_cast<std::int64_t>(element)),
                        function.values(i)[element], g[element], d.value, given ? "" : "; no gradient was given"));
      break;
    }
    for (std::size_t e = 0; e < count; ++e) {
      const double by = (rng.bits(100 + i, e) & 1u) != 0 ? 1.0 : -1.0;
      everywhere.push_back({i, e, by});
      along_everything += by * g[e];
      size += std::abs(g[e]);
    }
  }
  if (everywhere.empty()) return 0;
  const auto d = function.along(everywhere, 1e-4);
  if (!(std::abs(d.value - along_everything) <= relative * size + 8 * d.noise + 1e-12)) {
    found(fmt::format("along a random direction: vjp {:.9g}, differences {:.9g}", along_everything, d.value));
  }
  return everywhere.size();
}

template <class Found>
std::size_t check_in_f64(const OpInfo& op, const Problem& p, const Device& device, Found&& found) {
  const Backward backward(op, device, p);
  const Reach reach = backward.reach();
  for (const std::string& fault : reach.faults) found(fault);
  const std::uint64_t needs = reach.operands;
  if (needs == 0) return 0;
  const std::vector<Tensor> all = backward.cotangents(reach.outputs);
  const std::vector<Array> gradients = arrays_of(backward.vjp(all, needs));
  const std::size_t compared = compare_differences(op, p, reach.outputs, needs, gradients, found);

  for (std::size_t i = 0; i < p.in.size(); ++i) {
    if (((needs >> i) & 1u) == 0) continue;
    const Tensors alone = backward.vjp(all, std::uint64_t{1} << i);
    const Array got = alone[i].defined() ? array_of(alone[i]) : Array();
    if (!(got == gradients[i])) found(fmt::format("operand {}: its gradient alone has other bits than among all", i));
  }
  const Backward strided(op, device, p, true);
  if (const auto wrong = compare_bits(arrays_of(strided.vjp(strided.cotangents(reach.outputs), needs)), gradients)) {
    found("strided operands and cotangents: gradient " + *wrong);
  }
  if (std::has_single_bit(reach.outputs)) return compared;
  for (const std::size_t o : backward.floating_outputs()) {
    const std::uint64_t bit = std::uint64_t{1} << o;
    if ((reach.outputs & bit) == 0) continue;
    const std::vector<Array> part = arrays_of(backward.vjp(backward.cotangents(bit), needs));
    compare_differences(op, p, bit, needs, part,
                        [&](std::string text) { found(fmt::format("cotangent of output {} alone: {}", o, text)); });
  }
  return compared;
}

// vjp in the problem's own dtypes against vjp of the same values in float64.
template <class Found>
void check_low_precision(const OpInfo& op, const Problem& p, const Device& device, Found&& found) {
  std::vector<Array> exact;
  bool widened = false;
  for (const Array& a : p.in) {
    widened = widened || (is_floating(a.meta.dtype) && a.meta.dtype != DType::f64);
    exact.push_back(is_floating(a.meta.dtype) ? array_of({a.meta.shape, DType::f64}, real_values(a)) : a);
  }
  if (!widened) return;
  std::optional<Problem> reference;
  try {
    reference = make_problem(op, p.name, p.attrs, std::move(exact));
  } catch (const Error&) {
    return;  // an op with fixed dtypes
  }
  const Backward low(op, device, p), high(op, device, *reference);
  const Reach reach = high.reach();
  if (reach.operands == 0) return;  // a finding in f64
  const Tensors got = low.vjp(low.cotangents(reach.outputs), reach.operands);
  const Tensors want = high.vjp(high.cotangents(reach.outputs), reach.operands);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!got[i].defined() || !want[i].defined()) continue;
    // A gradient is some ops long; each may be off by its own tolerance.
    Tolerance tolerance = op.tolerance;
    tolerance.ulps = 16 * std::max(4.0, tolerance.ulps);
    tolerance.scale = Tolerance::Scale::tensor;
    tolerance.growth = Tolerance::Growth::sqrt_k;
    const double k =
        std::max(1.0, static_cast<double>(p.cost.flops) / std::max(1.0, static_cast<double>(got[i].count())));
    const std::vector<double> low_values = real_values(array_of(got[i])), high_values = real_values(array_of(want[i]));
    double unit = half_ulp(DType::f64);
    DType dtype = DType::f64;
    for (const Array& a : p.in) {
      if (is_floating(a.meta.dtype) && half_ulp(a.meta.dtype) > unit) unit = half_ulp(dtype = a.meta.dtype);
    }
    for (const Meta& m : p.out) {
      if (is_floating(m.dtype) && half_ulp(m.dtype) > unit) unit = half_ulp(dtype = m.dtype);
    }
    const Distance d = distance(low_values, high_values, dtype, tolerance, k);
    if (d.beyond == 0) continue;
    const auto worst = static_cast<std::size_t>(d.worst);
    found(fmt::format(
        "gradient of operand {}: element {}: {:.9g}, in f64 {:.9g}: {:.3g} ulps, allowed {}; {} of {} beyond", i,
        index_string(got[i].shape(), d.worst), low_values[worst], high_values[worst], d.ulps, tolerance.ulps, d.beyond,
        low_values.size()));
  }
}

}  // namespace

bool has_gradient(const OpInfo& op) {
  for (const OpInfo::Case& sample : op.samples) {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const auto p = make_problem(op, sample, dtype);
      if (!p) continue;
      try {
        const Backward backward(op, Devices::cpu().first, *p);
        backward.vjp(backward.cotangents(~std::uint64_t{0}), backward.floating_inputs());
      } catch (const TapeError& e) {
        return std::string_view(e.what()).find("has no gradient") == std::string_view::npos;
      } catch (...) {  // reported by the check itself
      }
      return true;
    }
  }
  return true;
}

Findings check_gradient_of(const OpInfo& op, const Problem& problem, const Devices& on, std::size_t* compared) {
  Findings findings;
  auto found = [&](std::string text) {
    findings.push_back({"gradient", std::string(op.record->name), problem.name, std::move(text)});
  };
  try {
    bool exact = true;
    for (const Array& a : problem.in) exact = exact && (!is_floating(a.meta.dtype) || a.meta.dtype == DType::f64);
    if (exact || problem.name.ends_with(" f32 as is")) {
      const std::size_t elements = check_in_f64(op, problem, on.first, found);
      if (compared != nullptr) *compared += elements;
    } else {
      check_low_precision(op, problem, on.second, found);
    }
  } catch (const MissingKernel&) {
    if (!on.partial) found(current_exception_text());
  } catch (...) {
    found(current_exception_text());
  }
  return findings;
}

Findings check_gradient(const OpInfo& op, const Devices& on) {
  Findings findings;
  std::size_t compared = 0;
  bool floating = false;
  for (const OpInfo::Case& sample : op.samples) {
    bool in_f64 = false;
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      auto problem = make_problem(op, sample, dtype);
      if (!problem) continue;
      in_f64 = in_f64 || dtype == DType::f64;
      // Samples that fix their dtypes have no other form to differentiate.
      if (dtype == DType::f32 && !in_f64) problem->name += " as is";
      for (Finding& f : check_gradient_of(op, *problem, on, &compared)) findings.push_back(std::move(f));
      const auto is_real = [](const Meta& m) { return is_floating(m.dtype); };
      floating =
          floating || (std::ranges::any_of(problem->in_metas(), is_real) && std::ranges::any_of(problem->out, is_real));
    }
  }
  if (floating && compared == 0 && !on.partial) {
    findings.push_back({"gradient", std::string(op.record->name), "all", "nothing was compared with differences"});
  }
  return findings;
}

}  // namespace lamina::harness
