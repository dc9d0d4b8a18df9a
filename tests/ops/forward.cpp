#include "tests/ops/checks.hpp"

#include <cmath>

namespace lamina::harness {

Findings check_forward(const OpInfo&, const Variant& variant, Problems problems, const Devices& on, double* worst) {
  Findings findings;
  bool reached = false;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"forward", std::string(variant.name), p.name, std::move(text)});
    };
    try {
      if (!supports(variant, p)) continue;
      reached = true;
      const std::vector<Array> out = launch(variant, p, on.second);
      if (const auto wrong = compare_outputs(p, out, worst)) found(*wrong);
    } catch (...) {
      found(current_exception_text());
    }
  }
  if (!reached) findings.push_back({"forward", std::string(variant.name), "all", "no sample is supported"});
  return findings;
}

Findings check_reference(const OpInfo& op, Problems problems) {
  Findings findings;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"reference", std::string(op.record->name), p.name, std::move(text)});
    };
    bool empty = false;
    for (const Array& a : p.in) empty = empty || a.count() == 0;
    try {
      const Values& values = p.expected();
      for (std::size_t o = 0; o < p.out.size(); ++o) {
        for (std::size_t i = 0; i < values.real[o].size(); ++i) {
          if (!std::isnan(values.real[o][i]) || empty) continue;
          found(fmt::format("output {}: element {} is NaN: not written, or made of what lies beside an operand", o,
                            index_string(p.out[o].shape, static_cast<std::int64_t>(i))));
          break;
        }
        for (std::size_t i = 0; i < values.index[o].size(); ++i) {
          if (values.index[o][i] != std::numeric_limits<std::int64_t>::min()) continue;
          found(fmt::format("output {}: element {} is not written", o,
                            index_string(p.out[o].shape, static_cast<std::int64_t>(i))));
          break;
        }
      }
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
