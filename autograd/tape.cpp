#include "lamina/autograd/tape.hpp"

#include <algorithm>
#include <bit>

#include "lamina/autograd/node.hpp"
#include "lamina/kernels/full/op.hpp"

namespace lamina {

// ---- tape ----

Tape::Tape(Mode mode, RunContext context) : mode_(mode), context_(context), anchor_(make_ref<TapeAnchor>()) {
  anchor_->tape = this;
}

Tape::~Tape() { clear(); }

Tape::Tape(Tape&& other) noexcept
    : mode_(other.mode_),
      context_(other.context_),
      replaying_(other.replaying_),
      anchor_(std::move(other.anchor_)),
      arena_(std::move(other.arena_)),
      nodes_(std::move(other.nodes_)),
      slots_(std::move(other.slots_)),
      param_slots_(std::move(other.param_slots_)),
      param_order_(std::move(other.param_order_)),
      bound_(std::move(other.bound_)) {
  other.nodes_.clear();
  if (anchor_) anchor_->tape = this;
}

Tape& Tape::operator=(Tape&& other) noexcept {
  if (this != &other) {
    std::destroy_at(this);
    ::new (this) Tape(std::move(other));
  }
  return *this;
}

void Tape::clear() noexcept {
  for (Node* node : nodes_) std::destroy_at(node);
  nodes_.clear();
  if (anchor_) anchor_->tape = nullptr;
}

Tape& Var::tape() const {
  if (!anchor_ || anchor_->tape == nullptr)
    fail<TapeError>("var", "its tape is gone; var of shape {}", to_string(shape()));
  return *anchor_->tape;
}

Var Tape::make_leaf(Tensor value, const Slot& slot) {
  if (!value.defined()) fail<TapeError>("tape", "a leaf needs a defined tensor");
  if (!records()) return {std::move(value), anchor_, -1};
  slots_.push_back(slot);
  return {std::move(value), anchor_, static_cast<int>(slots_.size()) - 1};
}

Var Tape::constant(Tensor value) { return make_leaf(std::move(value), {}); }

Var Tape::input(Tensor value) {
  Slot slot;
  slot.wantable = value.defined() && is_floating(value.dtype());
  slot.input = true;
  return make_leaf(std::move(value), slot);
}

Var Tape::param(const Param& param, Bind bind) {
  const auto bound = bound_.empty() ? bound_.end() : bound_.find(&param);
  auto [value, version] = bound == bound_.end() ? param.current() : Param::Current{bound->second, 0};
  if (const int* known = param_slots_.find(&param)) {
    if (!records()) return {std::move(value), anchor_, -1};
    const Slot& slot = slots_[static_cast<std::size_t>(*known)];
    if (!slot.late && bound == bound_.end() && slot.version != version) {
      fail<TapeError>("tape",
                      "a pinned parameter of shape {} was updated between two uses on one tape (version {}, {})",
                      to_string(value.shape()), slot.version, version);
    }
    return {std::move(value), anchor_, *known};
  }
  param_order_.push_back(&param);
  Slot slot;
  slot.param = &param;
  slot.version = version;
  slot.wantable = true;
  slot.late = bind == Bind::late && bound == bound_.end();
  Var var = make_leaf(std::move(value), slot);
  param_slots_.insert(&param, var.slot());
  return var;
}

int Tape::slot_of(const Var& var) const {
  if (&var.tape() != this) fail<TapeError>("tape", "the var of shape {} is of another tape", to_string(var.shape()));
  if (var.slot() < 0) fail<TapeError>("tape", "inference tapes record nothing");
  return var.slot();
}

Tape::Node* Tape::record(const OpRecord& op, const void* attrs, std::span<const Tensor* const> values,
                         std::span<const Var* const> vars, std::span<const Tensor> outputs) {
  const std::size_t n = values.size();
  std::uint64_t wantable = 0;
  bool all_late = true;
  bool any_late = false;
  int inline_slots[16];
  InlineVector<int, 1> many;
  int* in_slots = inline_slots;
  if (n > 16) {
    many.resize(n);
    in_slots = many.data();
  }
  for (std::size_t i = 0; i < n; ++i) {
    in_slots[i] = vars[i] == nullptr ? -1 : vars[i]->slot();
    if (in_slots[i] < 0) continue;
    const Slot& slot = slots_[static_cast<std::size_t>(in_slots[i])];
    if (slot.wantable) wantable |= std::uint64_t{1} << std::min<std::size_t>(i, 63);
    any_late = any_late || slot.late;
    all_late = all_late && (slot.late || !slot.wantable);
  }
  const bool late = any_late && all_late && op.id >= 0;
  const auto node_index = static_cast<int>(nodes_.size());

  Node* node = nullptr;
  if (wantable != 0) {
    // Keep what the gradients that may be wanted read, and nothing else.
    Keep keep;
    for (std::size_t i = 0; i < n; ++i) {
      if ((wantable >> std::min<std::size_t>(i, 63) & 1u) != 0) keep = keep | op.saves.operand(i);
    }
    node = ::new (arena_.allocate(sizeof(Node), alignof(Node))) Node();
    node->op = &op;
    node->attrs = arena_.allocate(op.attrs_size, op.attrs_align);
    op.copy_attrs(node->attrs, attrs);
    node->inputs = static_cast<std::uint32_t>(n);
    node->outputs = static_cast<std::uint32_t>(outputs.size());
    node->wantable = wantable;
    node->in_slots = arena_.array<int>(n);
    std::copy(in_slots, in_slots + n, node->in_slots);
    node->first_output = static_cast<int>(slots_.size());
    node->metas = pack_metas(arena_, values, outputs);
    // A late parameter, and what derives from late ones only, is found again at backward instead of being held;
    // a node of that kind holds its constants, so that it can be run again.
    if (keep.inputs != 0 || late) {
      node->saved_inputs = arena_.array<Tensor>(n);
      for (std::size_t i = 0; i < n; ++i) {
        const bool kept = (keep.inputs >> std::min<std::size_t>(i, 31) & 1u) != 0;
        const bool found_again = in_slots[i] >= 0 && slots_[static_cast<std::size_t>(in_slots[i])].late;
        if ((kept || late) && !found_again) node->saved_inputs[i] = *values[i];
      }
    }
    if (keep.outputs != 0) {
      node->saved_outputs = arena_.array<Tensor>(outputs.size());
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        if ((keep.outputs >> o & 1u) != 0 && !late) node->saved_outputs[o] = outputs[o];
      }
    }
    nodes_.push_back(node);
    for (std::size_t i = 0; i < n; ++i) {
      if (in_slots[i] < 0) continue;
      Slot& slot = slots_[static_cast<std::size_t>(in_slots[i])];
      if (slot.first_consumer < 0) slot.first_consumer = node_index;
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    Slot slot;
    slot.node = node == nullptr ? -1 : node_index;
    slot.wantable = node != nullptr && is_floating(outputs[o].dtype());
    slot.late = late && node != nullptr;
    slots_.push_back(slot);
  }
  return node;
}

namespace {

// The tape all vars share. Throws unless there is exactly one.
Tape& common_tape(std::string_view op, std::span<const Var* const> vars) {
  Tape* tape = nullptr;
  for (std::size_t i = 0; i < vars.size(); ++i) {
    if (vars[i] == nullptr) continue;
    Tape& t = vars[i]->tape();
    if (tape != nullptr && &t != tape) fail<TapeError>(op, "operand {}: a var of another tape", i);
    tape = &t;
  }
  if (tape == nullptr) fail<TapeError>(op, "no operand is a var");
  return *tape;
}

}  // namespace

Vars detail::apply_recorded(const OpRecord& op, const void* attrs, std::span<const Tensor* const> values,
                            std::span<const Var* const> vars) {
  Tape& tape = common_tape(op.name, vars);
  Tensors outputs = run(op, attrs, values);
  int slot = -1;
  if (tape.records()) {
    slot = static_cast<int>(tape.slots_.size());
    tape.record(op, attrs, values, vars, outputs);
  }
  Vars result;
  result.reserve(outputs.size());
  for (Tensor& t : outputs) {
    result.emplace_back(std::move(t), tape.anchor_, slot);
    if (slot >= 0) ++slot;
  }
  return result;
}

Vars Tape::custom(std::span<const Var> inputs, const CustomForward& forward, CustomVjp vjp) {
  Tensors values;
  InlineVector<const Tensor*, 8> value_refs;
  InlineVector<const Var*, 8> var_refs;
  values.reserve(inputs.size());
  for (const Var& v : inputs) {
    if (&v.tape() != this) fail<TapeError>("custom", "an input of shape {} is of another tape", to_string(v.shape()));
    value_refs.push_back(&values.emplace_back(v.value()));
    var_refs.push_back(&v);
  }
  Tensors outputs = forward(values);
  int slot = -1;
  if (records()) {
    slot = static_cast<int>(slots_.size());
    const CustomOp attrs{std::make_shared<const CustomVjp>(std::move(vjp))};
    record(custom_record(), &attrs, value_refs, var_refs, outputs);
  }
  Vars result;
  for (Tensor& t : outputs) {
    if (!t.defined()) fail<TapeError>("custom", "forward returned an undefined output");
    result.emplace_back(std::move(t), anchor_, slot);
    if (slot >= 0) ++slot;
  }
  return result;
}

std::int64_t Tape::saved_bytes() const noexcept {
  std::int64_t bytes = 0;
  for (const Node* node : nodes_) {
    for (std::size_t i = 0; node->saved_inputs != nullptr && i < node->inputs; ++i) {
      if (node->saved_inputs[i].defined()) bytes += node->saved_inputs[i].meta().bytes();
    }
    for (std::size_t o = 0; node->saved_outputs != nullptr && o < node->outputs; ++o) {
      if (node->saved_outputs[o].defined()) bytes += node->saved_outputs[o].meta().bytes();
    }
  }
  return bytes;
}

Pass Tape::pass() {
  if (!records()) fail<TapeError>("tape", "an inference tape has no backward");
  return Pass(*this);
}

Gradients Tape::backward(const Var& loss) {
  Pass p = pass();
  if (loss.value().count() != 1) {
    fail<TapeError>("backward", "the loss has shape {}, not one element; seed a Pass instead", to_string(loss.shape()));
  }
  p.seed(loss, full_like(loss.value(), 1));
  p.run_all(Release::as_used);
  Gradients gradients;
  const auto found = [&](std::size_t s) {
    return (slots_[s].param != nullptr || slots_[s].input) && p.cotangents_[s].defined();
  };
  std::size_t count = 0;
  for (std::size_t s = 0; s < slots_.size(); ++s) count += found(s) ? 1 : 0;
  gradients.found_.reserve(count);
  gradients.param_slots_.reserve(param_order_.size());
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!found(s)) continue;
    const Slot& slot = slots_[s];
    gradients.found_.push_back({static_cast<int>(s), std::move(p.cotangents_[s])});
    if (slot.param != nullptr) gradients.param_slots_.emplace_back(slot.param, static_cast<int>(s));
  }
  std::ranges::sort(gradients.param_slots_, std::less<>{}, &std::pair<const Param*, int>::first);
  return gradients;
}

// ---- gradients ----

std::size_t Gradients::find(int slot) const {
  const auto it = std::ranges::lower_bound(found_, slot, {}, &Found::slot);
  return it == found_.end() || it->slot != slot ? found_.size() : static_cast<std::size_t>(it - found_.begin());
}

std::size_t Gradients::find(const Param& param) const {
  const auto it = std::ranges::lower_bound(param_slots_, &param, std::less<>{}, &std::pair<const Param*, int>::first);
  return it == param_slots_.end() || it->first != &param ? found_.size() : find(it->second);
}

Tensor Gradients::of(const Param& param) const {
  const std::size_t at = find(param);
  return at == found_.size() ? Tensor() : found_[at].gradient;
}

Tensor Gradients::of(const Var& var) const {
  const std::size_t at = find(var.slot());
  return at == found_.size() ? Tensor() : found_[at].gradient;
}

bool Gradients::has(const Param& param) const { return of(param).defined(); }

Tensor Gradients::take(const Param& param) {
  const std::size_t at = find(param);
  return at == found_.size() ? Tensor() : std::move(found_[at].gradient);
}

// ---- views on the tape ----

Var stop_gradient(const Var& var) { return var.tape().constant(var.value()); }

Var reshape(const Var& x, const Shape& shape) {
  Tape& tape = x.tape();
  Tensor out = contiguous(x.value()).view(shape);
  if (!tape.records()) return {std::move(out), tape.anchor_, -1};
  const int slot = static_cast<int>(tape.slots_.size());
  const Tensor* value = &x.value();
  const Var* var = &x;
  const NoAttrs attrs;
  tape.record(reshape_record(), &attrs, {&value, 1}, {&var, 1}, {&out, 1});
  return {std::move(out), tape.anchor_, slot};
}

Var reshape(const Var& x, std::initializer_list<std::int64_t> dims) {
  return reshape(x, contiguous(x.value()).view(dims).shape());
}

}  // namespace lamina
