#include "tests/ops/launch.hpp"

#include <fmt/format.h>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cpu/isa.hpp"

namespace lamina::harness {

const Devices& Devices::get() {
  static const Devices devices{cpu_device({.threads = 1, .name = "one", .poison_memory = true}),
                               cpu_device({.threads = 2, .name = "two"}), cpu_device({.threads = 7, .name = "seven"})};
  return devices;
}

bool runs_here(Isa isa) {
  static const CpuFeatures features = CpuFeatures::read();
  return can_run(isa, features);
}

std::span<const Variant* const> variants_of(const OpInfo& op) {
  return Devices::get().one.state()->kernels->entry(op.record->id).all;
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
               std::span<std::byte* const> out, Executor& executor) {
  const Dense ins(problem.in_metas(), in), outs(problem.out, out);
  const Device& device = Devices::get().one;
  variant.launch(problem.attrs, ins.operands, outs.operands, executor, device.queue(), device.state()->pool);
}

std::vector<Array> launch(const Variant& variant, const Problem& problem, Executor& executor, int fill) {
  std::vector<Array> out;
  for (const Meta& m : problem.out) out.emplace_back(m, fill);
  launch_at(variant, problem, addresses(problem.in), addresses(out), executor);
  return out;
}

Executor& executor_of(const Device& device) { return device.state()->backend->executor(); }

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
