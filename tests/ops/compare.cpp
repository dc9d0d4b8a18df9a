#include "tests/ops/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace lamina::harness {

std::string to_string(const Finding& f) { return fmt::format("{}: {}: {}: {}", f.check, f.subject, f.problem, f.text); }

double half_ulp(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

double half_smallest(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-1074;
    case DType::f16: return 0x1p-25;
    case DType::bf16: return 0x1p-134;
    default: return 0x1p-150;
  }
}

namespace {
double rounded(double x, DType dtype) {
  switch (dtype) {
    case DType::f64: return x;
    case DType::f16: return static_cast<double>(static_cast<float>(Half(static_cast<float>(x))));
    case DType::bf16: return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(x))));
    default: return static_cast<double>(static_cast<float>(x));
  }
}
}  // namespace

Distance distance(std::span<const double> got, std::span<const double> want, DType dtype, const Tolerance& tolerance,
                  double flops_per_element) {
  // Elements that are exactly 0 had no terms (a stride that passes over them): they have no error, and the FLOPs were
  // not spent on them.
  double squares = 0, finite = 0, zeros = 0;
  for (const double w : want) {
    if (!std::isfinite(w)) continue;
    squares += w * w;
    finite += 1;
    zeros += w == 0 ? 1 : 0;
  }
  const double count = static_cast<double>(want.size());
  const double k = zeros < count ? flops_per_element * count / (count - zeros) : flops_per_element;
  double growth = 1;
  if (tolerance.growth == Tolerance::Growth::sqrt_k) growth = std::sqrt(k);
  if (tolerance.growth == Tolerance::Growth::k) growth = k;
  const bool of_tensor = tolerance.scale == Tolerance::Scale::tensor && finite > zeros;
  const double floor = of_tensor ? std::sqrt(squares / (finite - zeros)) : 0;
  Distance result;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double w = want[i];
    if ((std::isnan(got[i]) && std::isnan(w)) || got[i] == w || got[i] == rounded(w, dtype)) continue;
    const double unit = std::max(half_ulp(dtype) * growth * std::max(std::abs(w), floor), half_smallest(dtype));
    double ulps = std::abs(got[i] - w) / unit;
    if (std::isnan(ulps)) ulps = std::numeric_limits<double>::infinity();
    if (!(ulps <= tolerance.ulps)) ++result.beyond;
    if (!(ulps <= result.ulps)) {
      result.ulps = ulps;
      result.worst = static_cast<std::int64_t>(i);
    }
  }
  return result;
}

std::optional<std::string> compare_outputs(const Problem& p, std::span<const Array> got, double* worst) {
  const Values& expected = p.expected();
  if (got.size() != p.out.size()) return fmt::format("{} outputs, the shape rule says {}", got.size(), p.out.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    const Meta& meta = p.out[o];
    if (!(got[o].meta == meta)) {
      return fmt::format("output {}: {}{}, the shape rule says {}{}", o, name_of(got[o].meta.dtype),
                         to_string(got[o].meta.shape), name_of(meta.dtype), to_string(meta.shape));
    }
    if (is_floating(meta.dtype)) {
      const std::vector<double> values = real_values(got[o]);
      const std::vector<double>& want = expected.real[o];
      const Tolerance& tolerance = p.op->tolerance;
      const Distance d = distance(values, want, meta.dtype, tolerance, p.flops_per_element());
      if (worst != nullptr) *worst = std::max(*worst, d.ulps);
      if (d.beyond == 0) continue;
      const auto i = static_cast<std::size_t>(d.worst);
      return fmt::format(
          "output {}: element {}: got {:.9g}, reference {:.9g}: {:.3g} ulps, allowed {}; {} of {} beyond", o,
          index_string(meta.shape, d.worst), values[i], want[i], d.ulps, tolerance.ulps, d.beyond, values.size());
    }
    const std::vector<std::int64_t> values = index_values(got[o]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == expected.index[o][i]) continue;
      return fmt::format("output {}: element {}: got {}, reference {}", o,
                         index_string(meta.shape, static_cast<std::int64_t>(i)), values[i], expected.index[o][i]);
    }
  }
  return {};
}

std::optional<std::string> compare_bits(std::span<const Array> got, std::span<const Array> want) {
  if (got.size() != want.size()) return fmt::format("{} arrays, not {}", got.size(), want.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    if (got[o] == want[o]) continue;
    if (!(got[o].meta == want[o].meta)) {
      return fmt::format("output {}: {}{}, not {}{}", o, name_of(got[o].meta.dtype), to_string(got[o].meta.shape),
                         name_of(want[o].meta.dtype), to_string(want[o].meta.shape));
    }
    const std::size_t size = size_of(got[o].meta.dtype);
    const auto at = std::mismatch(got[o].bytes.begin(), got[o].bytes.end(), want[o].bytes.begin()).first;
    const auto i = static_cast<std::size_t>(at - got[o].bytes.begin()) / size;
    return fmt::format("output {}: element {}: {:.9g}, not {:.9g}: the bits differ", o,
                       index_string(got[o].meta.shape, static_cast<std::int64_t>(i)), real_values(got[o])[i],
                       real_values(want[o])[i]);
  }
  return {};
}

}  // namespace lamina::harness
