// Tape: what was computed, held as an object. A tape per layer group with a detached boundary is local backprop; a
// tape per micro-batch is a pipeline stage; dropping a tape frees exactly its activations; tapes never meet.
//
//   Tape tape;
//   Var x = tape.constant(images);
//   Var loss = cross_entropy(model(x), labels);
//   Gradients gradients = tape.backward(loss);
//
// Thread-safety: a tape, its vars and passes belong to one thread at a time and may move; tapes on different threads
// are independent, also when they share parameters.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lamina/autograd/arena.hpp"
#include "lamina/autograd/param.hpp"
#include "lamina/autograd/param_slots.hpp"
#include "lamina/autograd/var.hpp"

namespace lamina {

/// How a tape binds a parameter.
enum class Bind : std::uint8_t {
  pinned,  ///< this version: what backward needs of it is held (PipeDream, DDG)
  late,    ///< the version current at backward, or the one a pass rebinds (PipeMare, Features Replay); holds no storage
};

enum class Release : std::uint8_t {
  nothing,  ///< saved tensors stay: another pass may come
  as_used,  ///< each is dropped once no operand gradient that may still be wanted needs it
};

/// The gradients a backward found. Absent is not zero: what the loss does not depend on has none.
class Gradients {
 public:
  /// Undefined when absent.
  Tensor of(const Param& param) const;
  Tensor of(const Var& var) const;
  /// Moves it out, so that the caller is its only owner.
  Tensor take(const Param& param);
  bool has(const Param& param) const;

 private:
  friend class Tape;
  struct Found {
    int slot;
    Tensor gradient;
  };
  // Index into found_; its size when absent.
  std::size_t find(const Param& param) const;
  std::size_t find(int slot) const;

  std::vector<Found> found_;                               // by slot
  std::vector<std::pair<const Param*, int>> param_slots_;  // by address
};

class Pass;

/// What layers may ask of the run they are part of. Random streams are keyed by it, so that a re-run of a step draws
/// the same numbers.
struct RunContext {
  bool training = true;  ///< dropout drops, batch norm uses the batch's statistics and updates its own
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          ///< optimiser step
  std::int64_t first_example = 0;  ///< id in the step's joined batch of the first example on this tape
};

class Tape {
 public:
  enum class Mode : std::uint8_t {
    record,
    inference,  ///< records nothing; vars are just values
  };
  explicit Tape(Mode mode = Mode::record, RunContext context = {});
  /// An inference tape outside training: dropout passes, batch norm uses its running statistics.
  static Tape evaluation() { return Tape(Mode::inference, {.training = false}); }
  ~Tape();
  Tape(Tape&& other) noexcept;
  Tape& operator=(Tape&& other) noexcept;

  bool records() const noexcept { return mode_ == Mode::record; }
  const RunContext& context() const noexcept { return context_; }

  /// A value no gradient is ever wanted of.
  Var constant(Tensor value);
  /// A boundary: its gradient may be wanted.
  Var input(Tensor value);
  /// A parameter; the same one twice is the same var. A pinned parameter may not be updated between two uses on one
  /// tape: TapeError.
  Var param(const Param& param, Bind bind = Bind::pinned);

  /// Records what is no kernel: a collective, a synthetic gradient. `forward` gets the values and returns the outputs;
  /// `vjp` gets one dense cotangent an output (undefined: none arrived) and the operands wanted, and returns one
  /// gradient an operand (undefined: absent). Both may throw; what they keep they capture.
  using CustomForward = std::function<Tensors(TensorsIn inputs)>;
  using CustomVjp = std::function<Tensors(TensorsIn cotangents, Needs needs)>;
  Vars custom(std::span<const Var> inputs, const CustomForward& forward, CustomVjp vjp);

  /// Backward as an object; any number may be open at once.
  Pass pass();
  /// One consuming pass from a loss of one element over all parameters and inputs: saved tensors are released as they
  /// are used. Throws TapeError when the loss is not of this tape or has more elements.
  Gradients backward(const Var& loss);

  /// Recorded ops, and bytes held by what they saved (shared storages counted once an op).
  std::size_t nodes() const noexcept { return nodes_.size(); }
  std::int64_t saved_bytes() const noexcept;
  /// Parameters used so far, in the order of their first use (also on inference tapes).
  std::span<const Param* const> params() const noexcept { return {param_order_.data(), param_order_.size()}; }

  /// True while a recompute replays its function: layers with running state must not write it a second time.
  bool replaying() const noexcept { return replaying_; }

 private:
  friend class Pass;
  friend Vars detail::apply_recorded(const OpRecord&, const void*, std::span<const Tensor* const>,
                                     std::span<const Var* const>);
  friend Var reshape(const Var&, const Shape&);
  friend struct RecomputeAccess;

  struct Node;
  struct Slot {
    int node = -1;            // -1: a leaf
    int first_consumer = -1;  // node index, for leaves: when it was processed the gradient is final
    const Param* param = nullptr;
    std::uint64_t version = 0;  // of a pinned parameter when first used
    bool wantable = false;
    bool late = false;  // a late parameter, or derived from nothing but late parameters and constants
    bool input = false;
  };

  Var make_leaf(Tensor value, const Slot& slot);
  Node* record(const OpRecord& op, const void* attrs, std::span<const Tensor* const> values,
               std::span<const Var* const> vars, std::span<const Tensor> outputs);
  int slot_of(const Var& var) const;
  void clear() noexcept;

  Mode mode_;
  RunContext context_;
  bool replaying_ = false;
  Ref<TapeAnchor> anchor_;
  Arena arena_;
  // Those of a small tape live in it.
  InlineVector<Node*, 16> nodes_;
  InlineVector<Slot, 16> slots_;
  ParamSlots param_slots_;
  InlineVector<const Param*, 8> param_order_;
  std::unordered_map<const Param*, Tensor> bound_;  // values given by recompute instead of the current ones
};

/// Backward through a tape: takes cotangent seeds on any vars, computes what is wanted, and can be continued with other
/// wanted vars from the cotangents it kept (zero-bubble's two halves). It owns its cotangents; the tape must outlive
/// it.
class Pass {
 public:
  /// Adds a cotangent of the var's shape and dtype (else ShapeError, DTypeError). Seeds of one var add in call order.
  void seed(const Var& var, Tensor cotangent);
  /// The value a late parameter has in this pass, instead of its current one. TapeError unless bound late.
  void rebind(const Param& param, Tensor value);
  /// Computes the cotangents of `wanted`. Operand gradients done by an earlier run are not done again.
  void run(std::span<const Var> wanted, Release release = Release::nothing);
  void run(std::initializer_list<Var> wanted, Release release = Release::nothing) {
    run(std::span<const Var>(wanted.begin(), wanted.size()), release);
  }
  /// As run(), for every parameter and input of the tape.
  void run_all(Release release = Release::nothing);

  /// The cotangent of a var, if any arrived; moved out.
  std::optional<Tensor> take(const Var& var);
  std::optional<Tensor> take(const Param& param);

  /// Called by run() as soon as a parameter's gradient is final for this pass: when its earliest recorded consumer has
  /// been processed, so in the order last layer first. Parameters not reached never fire.
  void on_final(std::function<void(const Param&, const Tensor&)> hook) { on_final_ = std::move(hook); }

 private:
  friend class Tape;
  explicit Pass(Tape& tape) : tape_(&tape) {}
  // A slot is wanted, or needed because a wanted one went into it.
  static constexpr std::uint8_t kNeeded = 1, kWanted = 2;
  using Uses = InlineVector<std::uint8_t, 64>;  // by slot
  void run_slots(std::span<std::uint8_t> uses, Release release);
  void run_node(std::size_t index, std::span<const std::uint8_t> uses, Release release);
  void accumulate(int slot, Tensor cotangent);
  Tensor late_value(int slot);

  Tape* tape_;
  std::vector<Tensor> cotangents_;        // by slot
  InlineVector<std::uint64_t, 16> done_;  // by node: operands whose gradient was computed
  std::unordered_map<const Param*, Tensor> rebound_;
  std::unordered_map<int, Tensor> late_values_;
  std::function<void(const Param&, const Tensor&)> on_final_;
};

/// The same value as a constant of the same tape: no gradient flows through it.
Var stop_gradient(const Var& var);
/// The value alone.
inline Tensor detach(const Var& var) { return var.value(); }

/// Another shape over the same elements: no copy. Throws ShapeError when the counts differ. One extent may be -1.
Var reshape(const Var& x, const Shape& shape);
Var reshape(const Var& x, std::initializer_list<std::int64_t> dims);
inline Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> dims) { return x.view(dims); }

/// Runs `fn` without keeping its activations and runs it again in backward: memory for time. The values and gradients
/// are the same bits. Parameters used inside are found by running it; `bind` says which of their versions the second
/// run sees. `fn` must be a pure function of its inputs and parameters (random streams are keyed by counters).
Vars recompute(std::span<const Var> inputs, std::function<Vars(Tape&, std::span<const Var>)> fn,
               Bind bind = Bind::pinned);

}  // namespace lamina
