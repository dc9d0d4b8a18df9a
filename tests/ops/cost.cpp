#include "tests/ops/checks.hpp"

namespace lamina::harness {

namespace {

std::int64_t count_flops(const OpInfo& op, const Problem& p) {
  std::vector<std::vector<CountingReal>> real(p.in.size()), out_real(p.out.size());
  std::vector<std::vector<std::int64_t>> index(p.in.size()), out_index(p.out.size());
  std::vector<RefIn<CountingReal>> in;
  std::vector<RefOut<CountingReal>> out;
  for (std::size_t i = 0; i < p.in.size(); ++i) {
    const bool floating = is_floating(p.in[i].meta.dtype);
    if (floating) {
      for (const double v : real_values(p.in[i])) real[i].emplace_back(v);
    } else {
      index[i] = index_values(p.in[i]);
    }
    in.push_back({p.in[i].meta.shape, floating ? real[i].data() : nullptr, floating ? nullptr : index[i].data()});
  }
  for (std::size_t o = 0; o < p.out.size(); ++o) {
    const auto count = static_cast<std::size_t>(p.out[o].shape.count());
    const bool floating = is_floating(p.out[o].dtype);
    if (floating) {
      out_real[o].resize(count);
    } else {
      out_index[o].resize(count);
    }
    out.push_back({p.out[o].shape, floating ? out_real[o].data() : nullptr, floating ? nullptr : out_index[o].data()});
  }
  CountingReal::flops = 0;
  op.count(p.attrs, in, out);
  return CountingReal::flops;
}

}  // namespace

Findings check_cost(const OpInfo& op, Problems problems) {
  Findings findings;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"cost", std::string(op.record->name), p.name, std::move(text)});
    };
    try {
      const std::vector<Meta> metas = p.in_metas();
      const Cost cost = op.record->cost(p.attrs, metas, p.out);
      const Cost streamed = stream_cost(0, metas, p.out);
      if (cost.bytes_written != streamed.bytes_written) {
        found(
            fmt::format("{} bytes written declared, the outputs have {}", cost.bytes_written, streamed.bytes_written));
      }
      if (op.reads_part ? cost.bytes_read > streamed.bytes_read : cost.bytes_read != streamed.bytes_read) {
        found(fmt::format("{} bytes read declared, the inputs have {}", cost.bytes_read, streamed.bytes_read));
      }
      if (!p.name.ends_with(" f32")) continue;  // FLOPs do not depend on the dtype
      const std::int64_t counted = count_flops(op, p);
      if (cost.flops != counted) found(fmt::format("{} flops declared, {} counted", cost.flops, counted));
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

Findings check_counts(const OpInfo& op, Problems problems, const Devices& on) {
  Findings findings;
  for (const Problem& p : problems) {
    if (!p.name.ends_with(" f32")) continue;
    auto found = [&](std::string text) {
      findings.push_back({"cost", fmt::format("{} on {}", op.record->name, on.kind), p.name, std::move(text)});
    };
    try {
      std::vector<Tensor> in;
      std::vector<const Tensor*> refs;
      for (const Array& a : p.in) in.push_back(tensor_of(on.first, a));
      for (const Tensor& t : in) refs.push_back(&t);
      const DeviceCounts before = on.first.counts();
      run_on(on.first, *op.record, p.attrs, refs);
      on.first.synchronize();
      const DeviceCounts after = on.first.counts();
      const auto compare = [&](std::string_view what, std::int64_t counted, std::int64_t declared) {
        if (counted != declared) found(fmt::format("{} {} counted by the device, not {}", counted, what, declared));
      };
      compare("launches", after.launches - before.launches, 1);
      compare("flops", after.flops - before.flops, p.cost.flops);
      compare("bytes", after.bytes - before.bytes, p.cost.bytes_read + p.cost.bytes_written);
      compare("layout copies", after.layout_copies - before.layout_copies, 0);
    } catch (const MissingKernel&) {
      if (!on.partial) found(current_exception_text());
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
