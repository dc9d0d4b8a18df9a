#include <algorithm>

#include "lamina/autograd/node.hpp"
#include "lamina/autograd/tape.hpp"
#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/copy/op.hpp"

namespace lamina {

void Pass::seed(const Var& var, Tensor cotangent) {
  const int slot = tape_->slot_of(var);
  if (!(cotangent.shape() == var.shape())) {
    fail<ShapeError>("pass", "seed of shape {} for a var of shape {}", to_string(cotangent.shape()),
                     to_string(var.shape()));
  }
  if (cotangent.dtype() != var.dtype()) {
    fail<DTypeError>("pass", "seed of {} for a var of {}", name_of(cotangent.dtype()), name_of(var.dtype()));
  }
  accumulate(slot, std::move(cotangent));
}

void Pass::rebind(const Param& param, Tensor value) {
  const int* slot = tape_->param_slots_.find(&param);
  if (slot == nullptr) fail<TapeError>("pass", "rebind: the parameter is not on the tape");
  if (!tape_->slots_[static_cast<std::size_t>(*slot)].late) {
    fail<TapeError>("pass", "rebind: the parameter is pinned; bind it late");
  }
  if (!(value.meta() == param.meta())) {
    fail<ShapeError>("pass", "rebind: {} does not match {}", to_string(value), to_string(param.meta().shape));
  }
  rebound_[&param] = std::move(value);
  late_values_.clear();
}

void Pass::accumulate(int slot, Tensor cotangent) {
  const auto s = static_cast<std::size_t>(slot);
  if (cotangents_.size() <= s) cotangents_.resize(tape_->slots_.size());
  Tensor& sum = cotangents_[s];
  // What a caller, an optimiser or a bucket gets is dense; between ops a view will do (sum's is a repeated element).
  if (tape_->slots_[s].node < 0 && !cotangent.is_contiguous()) cotangent = contiguous(cotangent);
  if (!sum.defined()) {
    sum = std::move(cotangent);  // adopted: 0 + x would lose the sign of -0
    return;
  }
  const Add::Attrs attrs;
  const Tensor* in[] = {&sum, &cotangent};
  if (sum.sole() && sum.is_contiguous() && sum.meta() == cotangent.meta()) {
    run_into(record_of<Add>, &attrs, in, {&sum, 1}, true);
  } else {
    sum = std::move(lamina::run(record_of<Add>, &attrs, in)[0]);
  }
}

Tensor Pass::late_value(int slot_index) {
  const Tape::Slot& slot = tape_->slots_[static_cast<std::size_t>(slot_index)];
  if (slot.param != nullptr) {
    const auto it = rebound_.find(slot.param);
    return it != rebound_.end() ? it->second : slot.param->value();
  }
  if (const auto it = late_values_.find(slot_index); it != late_values_.end()) return it->second;
  const Tape::Node& node = *tape_->nodes_[static_cast<std::size_t>(slot.node)];
  Tensors inputs;
  InlineVector<const Tensor*, 8> refs;
  inputs.reserve(node.inputs);
  for (std::size_t i = 0; i < node.inputs; ++i) {
    const int in = node.in_slots[i];
    const bool late = in >= 0 && tape_->slots_[static_cast<std::size_t>(in)].late;
    refs.push_back(&inputs.emplace_back(late ? late_value(in) : node.saved_inputs[i]));
  }
  const Tensors outputs = lamina::run(*node.op, node.attrs, refs);
  for (std::size_t o = 0; o < outputs.size(); ++o) late_values_[node.first_output + static_cast<int>(o)] = outputs[o];
  return late_values_[slot_index];
}

void Pass::run(std::span<const Var> wanted, Release release) {
  Uses uses(tape_->slots_.size());
  for (const Var& v : wanted) {
    const auto slot = static_cast<std::size_t>(tape_->slot_of(v));
    if (!tape_->slots_[slot].wantable) {
      fail<TapeError>("pass", "the gradient of a constant of shape {} cannot be wanted", to_string(v.shape()));
    }
    uses[slot] = kWanted | kNeeded;
  }
  run_slots({uses.data(), uses.size()}, release);
}

void Pass::run_all(Release release) {
  Uses uses(tape_->slots_.size());
  for (std::size_t s = 0; s < uses.size(); ++s) {
    const Tape::Slot& slot = tape_->slots_[s];
    if (slot.wantable && (slot.param != nullptr || slot.input)) uses[s] = kWanted | kNeeded;
  }
  run_slots({uses.data(), uses.size()}, release);
}

void Pass::run_slots(std::span<std::uint8_t> uses, Release release) {
  const std::size_t nodes = tape_->nodes_.size();
  cotangents_.resize(tape_->slots_.size());
  done_.resize(nodes);
  for (std::size_t n = 0; n < nodes; ++n) {
    const Tape::Node& node = *tape_->nodes_[n];
    bool any = false;
    for (std::size_t i = 0; i < node.inputs && !any; ++i) {
      any = node.in_slots[i] >= 0 && uses[static_cast<std::size_t>(node.in_slots[i])] != 0;
    }
    if (!any) continue;
    for (std::size_t o = 0; o < node.outputs; ++o) uses[static_cast<std::size_t>(node.first_output) + o] |= kNeeded;
  }
  // Leaves to report, by the node after which they are final.
  std::vector<std::pair<int, int>> finals;
  if (on_final_) {
    for (std::size_t s = 0; s < uses.size(); ++s) {
      const Tape::Slot& slot = tape_->slots_[s];
      if ((uses[s] & kWanted) != 0 && slot.param != nullptr && slot.first_consumer >= 0) {
        finals.emplace_back(slot.first_consumer, static_cast<int>(s));
      }
    }
    std::sort(finals.begin(), finals.end());
  }
  for (std::size_t n = nodes; n-- > 0;) {
    run_node(n, uses, release);
    while (!finals.empty() && finals.back().first == static_cast<int>(n)) {
      const auto slot = static_cast<std::size_t>(finals.back().second);
      finals.pop_back();
      if (cotangents_[slot].defined()) on_final_(*tape_->slots_[slot].param, cotangents_[slot]);
    }
  }
}

void Pass::run_node(std::size_t index, std::span<const std::uint8_t> uses, Release release) {
  Tape::Node& node = *tape_->nodes_[index];
  const auto first = static_cast<std::size_t>(node.first_output);
  bool arrived = false;
  for (std::size_t o = 0; o < node.outputs; ++o) arrived = arrived || cotangents_[first + o].defined();
  if (!arrived) return;
  std::uint64_t want = 0;
  for (std::size_t i = 0; i < node.inputs; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << std::min<std::size_t>(i, 63);
    const int slot = node.in_slots[i];
    if (slot >= 0 && uses[static_cast<std::size_t>(slot)] != 0 && (node.wantable & bit) != 0) want |= bit;
  }
  want &= ~done_[index];
  if (want == 0) return;
  // One kernel makes all gradients: those not wanted now wait in their slots for a later run.
  if (node.op->saves.unsplit) want = node.wantable & ~done_[index];

  // What a late binding lets change is looked up now.
  Tensors late_inputs;
  std::span<const Tensor> inputs(node.saved_inputs, node.saved_inputs != nullptr ? node.inputs : 0);
  std::span<const Tensor> outputs(node.saved_outputs, node.saved_outputs != nullptr ? node.outputs : 0);
  Keep keep;
  for (std::size_t i = 0; i < node.inputs; ++i) {
    if ((want >> std::min<std::size_t>(i, 63) & 1u) != 0) keep = keep | node.op->saves.operand(i);
  }
  bool any_late = false;
  for (std::size_t i = 0; i < node.inputs; ++i) {
    const int slot = node.in_slots[i];
    any_late = any_late || ((keep.inputs >> std::min<std::size_t>(i, 31) & 1u) != 0 && slot >= 0 &&
                            tape_->slots_[static_cast<std::size_t>(slot)].late);
  }
  if (any_late) {
    late_inputs.resize(node.inputs);
    for (std::size_t i = 0; i < node.inputs; ++i) {
      const int slot = node.in_slots[i];
      const bool late = slot >= 0 && tape_->slots_[static_cast<std::size_t>(slot)].late;
      if (late && (keep.inputs >> std::min<std::size_t>(i, 31) & 1u) != 0) {
        late_inputs[i] = late_value(slot);
      } else if (node.saved_inputs != nullptr) {
        late_inputs[i] = node.saved_inputs[i];
      }
    }
    inputs = late_inputs;
  }
  Tensors late_outputs;
  if (keep.outputs != 0 && tape_->slots_[first].late) {
    for (std::size_t o = 0; o < node.outputs; ++o) late_outputs.push_back(late_value(static_cast<int>(first + o)));
    outputs = late_outputs;
  }

  const auto metas = unpack_metas(node.metas, node.inputs + node.outputs);
  Tensors gradients;
  {
    const Saved saved(inputs, outputs, MetasIn(metas).first(node.inputs), MetasIn(metas).subspan(node.inputs));
    const TensorsIn cotangents = TensorsIn(cotangents_).subspan(first, node.outputs);
    gradients = node.op->vjp(node.attrs, saved, cotangents, Needs(want));
  }
  done_[index] |= want;
  if (release == Release::as_used && (node.wantable & ~done_[index]) == 0) {
    for (std::size_t o = 0; o < node.outputs; ++o) {
      if ((uses[first + o] & kWanted) == 0) cotangents_[first + o] = Tensor();
    }
  }
  if (gradients.size() != node.inputs) {
    fail<TapeError>(node.op->name, "its vjp returned {} gradients for {} operands", gradients.size(), node.inputs);
  }
  for (std::size_t i = 0; i < node.inputs; ++i) {
    if ((want >> std::min<std::size_t>(i, 63) & 1u) == 0 || !gradients[i].defined()) continue;
    const int slot = node.in_slots[i];
    if (slot < 0) continue;
    if (!(gradients[i].shape() == metas[i].shape)) {
      fail<TapeError>(node.op->name, "its vjp returned a gradient of shape {} for operand {} of shape {}",
                      to_string(gradients[i].shape()), i, to_string(metas[i].shape));
    }
    accumulate(slot, std::move(gradients[i]));
  }
  if (release == Release::as_used) {
    Keep still;
    const std::uint64_t left = node.wantable & ~done_[index];
    for (std::size_t i = 0; i < node.inputs; ++i) {
      if ((left >> std::min<std::size_t>(i, 63) & 1u) != 0) still = still | node.op->saves.operand(i);
    }
    for (std::size_t i = 0; node.saved_inputs != nullptr && i < node.inputs; ++i) {
      if ((still.inputs >> std::min<std::size_t>(i, 31) & 1u) == 0) node.saved_inputs[i] = Tensor();
    }
    for (std::size_t o = 0; node.saved_outputs != nullptr && o < node.outputs; ++o) {
      if ((still.outputs >> o & 1u) == 0) node.saved_outputs[o] = Tensor();
    }
  }
}

std::optional<Tensor> Pass::take(const Var& var) {
  const auto slot = static_cast<std::size_t>(tape_->slot_of(var));
  if (slot >= cotangents_.size() || !cotangents_[slot].defined()) return std::nullopt;
  return contiguous(std::exchange(cotangents_[slot], Tensor()));
}

std::optional<Tensor> Pass::take(const Param& param) {
  const int* known = tape_->param_slots_.find(&param);
  if (known == nullptr) return std::nullopt;
  const auto slot = static_cast<std::size_t>(*known);
  if (slot >= cotangents_.size() || !cotangents_[slot].defined()) return std::nullopt;
  return std::move(cotangents_[slot]);
}

}  // namespace lamina
