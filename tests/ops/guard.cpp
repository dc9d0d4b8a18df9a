#include <deque>

#include "tests/ops/checks.hpp"
#include "tests/ops/memory.hpp"

namespace lamina::harness {

namespace {

constexpr int kCanary = 0xA5;

struct BandedRun {
  std::deque<Banded> in, out;
};

// Inputs between bands of `band`, outputs starting as `fill` between canaries.
void run_banded(BandedRun& run, const Variant& variant, const Problem& p, const Device& device, int band, int fill) {
  std::vector<std::byte*> in, out;
  for (const Array& a : p.in) in.push_back(run.in.emplace_back(device, a, band).data());
  for (const Meta& m : p.out) out.push_back(run.out.emplace_back(device, Array(m, fill), kCanary).data());
  launch_at(variant, p, in, out, device);
}

template <class Found>
void compare_runs(BandedRun& nan, BandedRun& zero, const Problem& p, Found&& found) {
  for (BandedRun* run : {&nan, &zero}) {
    for (std::size_t o = 0; o < p.out.size(); ++o) {
      if (const auto at = run->out[o].stray_write()) found(fmt::format("output {}: stray write at byte {}", o, *at));
    }
    for (std::size_t i = 0; i < p.in.size(); ++i) {
      if (const auto at = run->in[i].stray_write()) found(fmt::format("input {}: stray write at byte {}", i, *at));
      if (!(run->in[i].contents() == p.in[i])) found(fmt::format("input {} was written", i));
    }
  }
  for (std::size_t o = 0; o < p.out.size(); ++o) {
    const Array a = nan.out[o].contents(), b = zero.out[o].contents();
    const std::size_t size = size_of(a.meta.dtype);
    std::int64_t unwritten = 0, influenced = 0, first = -1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count()); ++i) {
      bool kept_a = true, kept_b = true;
      for (std::size_t k = i * size; k < (i + 1) * size; ++k) {
        kept_a = kept_a && a.bytes[k] == std::byte{0xFF};
        kept_b = kept_b && b.bytes[k] == std::byte{0x00};
      }
      const bool same = std::memcmp(a.bytes.data() + i * size, b.bytes.data() + i * size, size) == 0;
      if (same) continue;
      (kept_a && kept_b ? unwritten : influenced) += 1;
      if (first < 0) first = static_cast<std::int64_t>(i);
    }
    if (unwritten > 0) {
      found(fmt::format("output {}: {} of {} elements not written, the first at {}", o, unwritten, a.count(),
                        index_string(a.meta.shape, first)));
    }
    if (influenced > 0) {
      found(
          fmt::format("output {}: {} of {} elements depend on what lies beside the operands or on what the output "
                      "held before, the first at {}",
                      o, influenced, a.count(), index_string(a.meta.shape, first)));
    }
  }
}

// One run with all operands before or after a page that faults, on this thread.
template <class Found>
void check_pages(const Variant& variant, const Problem& p, const Device& device, Paged::At at, Found&& found) {
  std::deque<Paged> ins, outs;
  std::vector<std::byte*> in, out;
  for (const Array& a : p.in) in.push_back(ins.emplace_back(a, at).data());
  for (const Meta& m : p.out) out.push_back(outs.emplace_back(Array(m, 0xFF), at).data());
  if (faults([&] { launch_at(variant, p, in, out, device); })) {
    found(at == Paged::At::back ? "touches memory past the end of an operand"
                                : "touches memory before the start of an operand");
  }
}

}  // namespace

Findings check_guard(const OpInfo&, const Variant& variant, Problems problems, const Devices& on) {
  Findings findings;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"guard", std::string(variant.name), p.name, std::move(text)});
    };
    try {
      if (!supports(variant, p)) continue;
      BandedRun nan, zero;
      run_banded(nan, variant, p, on.second, 0xFF, 0xFF);
      run_banded(zero, variant, p, on.second, 0x00, 0x00);
      compare_runs(nan, zero, p, found);
      if (!on.first.host_accessible()) continue;
      check_pages(variant, p, on.first, Paged::At::back, found);
      check_pages(variant, p, on.first, Paged::At::front, found);
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
