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

using MetaList = InlineVector<Meta, 4>;

MetaList metas_of(TensorRefs in) {
  MetaList metas;
  metas.reserve(in.size());
  for (const Tensor* t : in) metas.push_back(t->meta());
  return metas;
}

// All operands are defined and on one device.
void check_devices(const OpRecord& op, TensorRefs in) {
  if (in.empty()) fail<DeviceError>(op.name, "no operands and no device given");
  for (std::size_t i = 0; i < in.size(); ++i) {
    checked(op, i, *in[i]);
    if (&in[i]->storage().device() != &in[0]->storage().device()) {
      fail<DeviceError>(op.name, "operand 0 is {}, operand {} is {}", to_string(*in[0]), i, to_string(*in[i]));
    }
  }
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
  decltype(Variant::supports) refused = nullptr;  // the variants of one kernel, an instruction set each, ask the same
  for (const Variant* v : entry.usable) {
    if (v->supports == refused) continue;
    if (v->supports(attrs, in, out)) return *v;
    refused = v->supports;
  }
  fail_missing(op, entry, device, attrs, in, out);
}

// Chooses (unless `forced`) and launches.
void launch(const OpRecord& op, const Variant* forced, const void* attrs, TensorRefs in, MetasIn in_metas,
            std::span<Tensor> out, MetasIn out_metas, DeviceState& state, Queue& queue) {
  const Cost cost = op.cost(attrs, in_metas, out_metas);
  state.counters.add({.launches = 1, .flops = cost.flops, .bytes = cost.bytes_read + cost.bytes_written});
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
    if (copies > 0) state.counters.add({.layout_copies = static_cast<std::int64_t>(copies)});
    for (std::size_t i = 0; copies > 0 && i < in.size(); ++i) {
      if (in[i]->is_contiguous()) continue;
      used[i] = &dense.emplace_back(contiguous(*in[i]));
      ins[i] = operand_of(*used[i]);
    }
  }
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

Tensors allocate_and_launch(const OpRecord& op, const Variant* forced, const void* attrs, TensorRefs in) {
  check_devices(op, in);
  const MetaList metas = metas_of(in);
  const Tensor& first = *in[0];
  Tensors out;
  const Metas out_metas = op.infer(attrs, metas);
  for (const Meta& m : out_metas) out.emplace_back(first.storage().device_ref(), first.own_queue(), m.shape, m.dtype);
  launch(op, forced, attrs, in, metas, out, out_metas, first.storage().device(), first.queue());
  return out;
}

}  // namespace

Tensors run(const OpRecord& op, const void* attrs, TensorRefs in) {
  return allocate_and_launch(op, nullptr, attrs, in);
}

Tensors run_variant(const OpRecord& op, const Variant& variant, const void* attrs, TensorRefs in) {
  return allocate_and_launch(op, &variant, attrs, in);
}

Tensors run_on(const Device& device, const OpRecord& op, const void* attrs, TensorRefs in) {
  if (!in.empty()) {
    check_devices(op, in);
    if (&in[0]->storage().device() != device.state().get()) {
      fail<DeviceError>(op.name, "operand 0 is {}, to be run on {}", to_string(*in[0]), device.name());
    }
  }
  const MetaList metas = metas_of(in);
  Tensors out;
  const Metas out_metas = op.infer(attrs, metas);
  for (const Meta& m : out_metas) out.push_back(Tensor::empty(device, m.shape, m.dtype));
  launch(op, nullptr, attrs, in, metas, out, out_metas, *device.state(), device.queue());
  return out;
}

void run_into(const OpRecord& op, const void* attrs, TensorRefs in, std::span<Tensor> out, bool in_place) {
  check_devices(op, in);
  const MetaList metas = metas_of(in);
  DeviceState& device = in[0]->storage().device();
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
    if (&out[o].storage().device() != &device) {
      fail<DeviceError>(op.name, "output {} is {}, the operands are on {}", o, to_string(out[o]), device.name);
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
  launch(op, nullptr, attrs, in, metas, out, expected, device, in[0]->queue());
}

}  // namespace lamina
