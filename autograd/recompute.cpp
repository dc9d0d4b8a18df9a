#include "lamina/autograd/tape.hpp"

namespace lamina {

struct RecomputeAccess {
  static void set_replaying(Tape& tape) { tape.replaying_ = true; }
  static void bind_values(Tape& tape, std::unordered_map<const Param*, Tensor> values) {
    tape.bound_ = std::move(values);
  }
};

Vars recompute(std::span<const Var> inputs, std::function<Vars(Tape&, std::span<const Var>)> fn, Bind bind) {
  if (inputs.empty()) fail<TapeError>("recompute", "no inputs");
  Tape& tape = inputs[0].tape();

  // Run once without recording: the outputs, and which parameters take part.
  Tape quiet(Tape::Mode::inference, tape.context());
  Vars quiet_inputs;
  for (const Var& v : inputs) quiet_inputs.push_back(quiet.constant(v.value()));
  Tensors outputs;
  for (const Var& v : fn(quiet, quiet_inputs)) outputs.push_back(v.value());
  if (!tape.records()) {
    Vars result;
    for (Tensor& t : outputs) result.push_back(tape.constant(std::move(t)));
    return result;
  }
  const std::vector<const Param*> params(quiet.params().begin(), quiet.params().end());

  std::vector<Var> operands(inputs.begin(), inputs.end());
  std::vector<Tensor> kept_inputs;
  for (const Var& v : inputs) kept_inputs.push_back(v.value());
  std::unordered_map<const Param*, Tensor> pinned;
  for (const Param* p : params) {
    operands.push_back(tape.param(*p, bind));
    if (bind == Bind::pinned) pinned.emplace(p, operands.back().value());
  }
  auto vjp = [fn = std::move(fn), kept_inputs = std::move(kept_inputs), pinned = std::move(pinned), params,
              context = tape.context()](TensorsIn cotangents, Needs needs) {
    Tape replay(Tape::Mode::record, context);
    RecomputeAccess::set_replaying(replay);
    RecomputeAccess::bind_values(replay, pinned);
    std::vector<Var> in;
    for (const Tensor& t : kept_inputs) in.push_back(is_floating(t.dtype()) ? replay.input(t) : replay.constant(t));
    const Vars out = fn(replay, in);
    Pass pass = replay.pass();
    for (std::size_t o = 0; o < out.size(); ++o) {
      if (cotangents[o].defined()) pass.seed(out[o], cotangents[o]);
    }
    pass.run_all(Release::as_used);
    Tensors gradients(in.size() + params.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!needs[i]) continue;
      auto taken = i < in.size() ? pass.take(in[i]) : pass.take(*params[i - in.size()]);
      if (taken) gradients[i] = std::move(*taken);
    }
    return gradients;
  };
  return tape.custom(
      operands, [&](TensorsIn) { return outputs; }, std::move(vjp));
}

}  // namespace lamina
