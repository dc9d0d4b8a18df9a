#include "tests/ops/launch.hpp"

#include <fmt/format.h>

#include "lamina/kernels/cpu/isa.hpp"
#include "tests/support/devices.hpp"

namespace lamina::harness {

std::span<const Devices> Devices::present() {
  static const std::vector<Devices> present = [] {
    std::vector<Devices> all;
    for (const test::DeviceKind& kind : test::device_kinds()) {
      all.push_back({kind.name, kind.partial, kind.make(0, 0), kind.make(1, 0), kind.make(2, 0)});
    }
    return all;
  }();
  return present;
}

bool runs_here(Isa isa) {
  static const CpuFeatures features = CpuFeatures::read();
  return can_run(isa, features);
}

std::span<const Variant* const> variants_of(const OpInfo& op, const Devices& on) {
  return on.first.state()->kernels->entry(op.record->id).all;
}

namespace {

// Layouts have stable addresses: reserved before operands point at them.
struct Dense {
  std::vector<Layout> layouts;
  std::vector<Operand> operands;
  template <class Metas>
  Dense(const Metas& metas, std::span<std::byte* const> data) {
    layouts.reserve(metas.size());
    for (std::size_t i = 0; i < metas.size(); ++i) {
      layouts.emplace_back(metas[i].shape);
      operands.push_back({data[i], &layouts.back(), metas[i].dtype});
    }
  }
};

std::vector<std::byte*> addresses(std::span<const Array> arrays) {
  std::vector<std::byte*> data;
  for (const Array& a : arrays) data.push_back(const_cast<std::byte*>(a.bytes.data()));
  return data;
}

}  // namespace

bool supports(const Variant& variant, const Problem& problem) {
  const std::vector<std::byte*> out(problem.out.size(), nullptr);
  const Dense ins(problem.in_metas(), addresses(problem.in)), outs(problem.out, out);
  return static_cast<bool>(variant.supports(problem.attrs, ins.operands, outs.operands));
}

void launch_at(const Variant& variant, const Problem& problem, std::span<std::byte* const> in,
               std::span<std::byte* const> out, const Device& device, Executor* executor) {
  const Dense ins(problem.in_metas(), in), outs(problem.out, out);
  DeviceState& state = *device.state();
  variant.launch(problem.attrs, ins.operands, outs.operands,
                 executor != nullptr ? *executor : state.backend->executor(), device.queue(), state.pool);
  device.synchronize();
}

std::vector<Array> launch(const Variant& variant, const Problem& problem, const Device& device, Executor* executor) {
  std::vector<Array> out;
  for (const Meta& m : problem.out) out.emplace_back(m, 0xFF);
  if (device.host_accessible()) {
    launch_at(variant, problem, addresses(problem.in), addresses(out), device, executor);
    return out;
  }
  std::vector<Tensor> tensors;  // in, then out
  std::vector<std::byte*> data;
  for (const Array& a : problem.in) data.push_back(tensors.emplace_back(tensor_of(device, a)).raw());
  for (const Array& a : out) data.push_back(tensors.emplace_back(tensor_of(device, a)).raw());
  const std::span<std::byte* const> all(data);
  launch_at(variant, problem, all.first(problem.in.size()), all.subspan(problem.in.size()), device, executor);
  for (std::size_t o = 0; o < out.size(); ++o) out[o] = array_of(tensors[problem.in.size() + o]);
  return out;
}

std::string current_exception_text() {
  try {
    throw;
  } catch (const std::exception& e) {
    return fmt::format("threw \"{}\"", e.what());
  } catch (...) {
    return "threw something that is no std::exception";
  }
}

}  // namespace lamina::harness
