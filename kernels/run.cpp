#include "lamina/kernels/run.hpp"

#include <string>

#include "lamina/core/trace.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {

namespace {

using OperandList = InlineVector<Operand, 6>;

Operand operand_of(const Tensor& t) { return {t.raw(), &t.layout(), t.dtype()}; }

const Tensor& checked(const OpRecord& op, std::size_t i, const Tensor& t) {
  if (!t.defined()) fail<DeviceError>(op.name, "operand {}: the tensor is undefined", i);
  return t;
}

InlineVector<Meta, 4> metas_of(const OpRecord& op, TensorRefs in) {
  InlineVector<Meta, 4> metas;
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(checked(op, i, *in[i]).meta());
  return metas;
}

Device common_device(const OpRecord& op, TensorRefs in) {
  if (in.empty()) fail<DeviceError>(op.name, "no operands and no device given");
  const Tensor& first = *in[0];
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (&in[i]->storage().device() != &first.storage().device()) {
      fail<DeviceError>(op.name, "operand 0 is {}, operand {} is {}", to_string(first), i, to_string(*in[i]));
    }
  }
  return first.device();
}

[[noreturn]] void fail_missing(const OpRecord& op, const KernelTable::Entry& entry, const DeviceState& device,
                               const void* attrs, Operands in, Operands out) {
  std::string reasons;
  for (const Variant* v : entry.usable) {
    reasons += fmt::format("; {}: {}", v->name, v->supports(attrs, in, out).reason);
  }
  std::string types;
  for (const Operand& o : in) types += fmt::format(" {}{}", name_of(o.dtype), to_string(o.shape()));
  if (entry.usable.empty()) reasons += fmt::format("; {}", entry.missing);
  fail<MissingKernel>(op.name, "no kernel on {} for{}{}", device.name, types, reasons);
}

const Variant& select(const OpRecord& op, const DeviceState& device, const void* attrs, Operands in, Operands out) {
  const KernelTable::Entry& entry = device.kernels->entry(op.id);
  for (const Variant* v : entry.usable) {
    if (v->supports(attrs, in, out)) return *v;
  }
  fail_missing(op, entry, device, attrs, in, out);
}

// Chooses (unless `forced`) and launches.
void launch(const OpRecord& op, const Variant* forced, const void* attrs, TensorRefs in, MetasIn in_metas,
            std::span<Tensor> out, const Device& device) {
  DeviceState& state = *device.state();
  const Cost cost = op.cost(attrs, in_metas);
  state.counters.launches.fetch_add(1, std::memory_order_relaxed);
  state.counters.flops.fetch_add(cost.flops, std::memory_order_relaxed);
  state.counters.bytes.fetch_add(cost.bytes_read + cost.bytes_written, std::memory_order_relaxed);
  if (!state.has_storage) return;

  TraceSpan span(state.trace.load(std::memory_order_relaxed), TraceName::of_static(op.name), "op",
                 {.bytes = cost.bytes_read + cost.bytes_written, .flops = cost.flops});
  OperandList ins, outs;
  for (const Tensor* t : in) ins.push_back(operand_of(*t));
  for (const Tensor& t : out) outs.push_back(operand_of(t));
  const Variant* chosen = forced;
  if (chosen == nullptr) {
    chosen = &select(op, state, attrs, ins, outs);
  } else if (const Support s = chosen->supports(attrs, ins, outs); !s) {
    fail<MissingKernel>(op.name, "{}: {}", chosen->name, s.reason);
  }
  InlineVector<Tensor, 2> dense;  // keeps materialised operands alive until the launch
  InlineVector<const Tensor*, 6> used(in);
  if (chosen->dense) {
    std::size_t copies = 0;
    for (const Tensor* t : in) copies += t->is_contiguous() ? 0 : 1;
    dense.reserve(copies);  // `used` points into it
    for (std::size_t i = 0; copies > 0 && i < in.size(); ++i) {
      if (in[i]->is_contiguous()) continue;
      used[i] = &dense.emplace_back(contiguous(*in[i]));
      ins[i] = operand_of(*used[i]);
      state.counters.layout_copies.fetch_add(1, std::memory_order_relaxed);
    }
  }
  Queue& queue = device.queue();
  if (state.synchronous) {
    chosen->launch(attrs, ins, outs, state.backend->executor(), queue, state.pool);
    return;
  }
  for (const Tensor* t : used) t->storage().begin_use(queue, false);
  for (const Tensor& t : out) t.storage().begin_use(queue, true);
  chosen->launch(attrs, ins, outs, state.backend->executor(), queue, state.pool);
  for (const Tensor* t : used) t->storage().end_use(queue, false);
  for (const Tensor& t : out) t.storage().end_use(queue, true);
}

Tensors allocate_and_launch(const OpRecord& op, const Variant* forced, const void* attrs, TensorRefs in,
                            const Device& device) {
  const auto metas = metas_of(op, in);
  const Metas out_metas = op.infer(attrs, metas);
  Tensors out;
  out.reserve(out_metas.size());
  for (const Meta& m : out_metas) out.push_back(Tensor::empty(device, m.shape, m.dtype));
  launch(op, forced, attrs, in, metas, out, device);
  return out;
}

}  // namespace

Tensors run(const OpRecord& op, const void* attrs, TensorRefs in) {
  for (std::size_t i = 0; i < in.size(); ++i) checked(op, i, *in[i]);
  return allocate_and_launch(op, nullptr, attrs, in, common_device(op, in));
}

Tensors run_on(const Device& device, const OpRecord& op, const void* attrs, TensorRefs in) {
  return allocate_and_launch(op, nullptr, attrs, in, device);
}

Tensors run_variant(const OpRecord& op, const Variant& variant, const void* attrs, TensorRefs in) {
  for (std::size_t i = 0; i < in.size(); ++i) checked(op, i, *in[i]);
  return allocate_and_launch(op, &variant, attrs, in, common_device(op, in));
}

void run_into(const OpRecord& op, const void* attrs, TensorRefs in, std::span<Tensor> out, bool in_place) {
  const auto metas = metas_of(op, in);
  const Device device = common_device(op, in);
  const Metas expected = op.infer(attrs, metas);
  if (out.size() != expected.size()) {
    fail<ShapeError>(op.name, "{} outputs given, the op has {}", out.size(), expected.size());
  }
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (!(checked(op, o, out[o]).meta() == expected[o])) {
      fail<ShapeError>(op.name, "output {}: {} given, {}{} needed", o, to_string(out[o]), name_of(expected[o].dtype),
                       to_string(expected[o].shape));
    }
    if (!out[o].is_contiguous()) fail<LayoutError>(op.name, "output {} is not contiguous", o);
    if (&out[o].storage().device() != device.state().get()) {
      fail<DeviceError>(op.name, "output {} is {}, the operands are on {}", o, to_string(out[o]), device.name());
    }
    int allowed = 1;
    for (const Tensor* t : in) {
      if (!t->shares_storage(out[o])) continue;
      if (!in_place || t->raw() != out[o].raw() || !t->is_contiguous() || t->count() != out[o].count()) {
        fail<AliasError>(op.name, "output {} shares storage with an operand", o);
      }
      if (t != &out[o]) ++allowed;
    }
    if (out[o].storage().owners() > allowed || (allowed == 1 && !out[o].sole())) {
      fail<AliasError>(op.name, "output {} has {} other owner(s)", o, out[o].storage().owners() - allowed);
    }
  }
  launch(op, nullptr, attrs, in, metas, out, device);
}

}  // namespace lamina
