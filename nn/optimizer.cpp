#include "lamina/nn/optimizer.hpp"

#include <cmath>

#include "lamina/kernels/adam_step/op.hpp"
#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/global_norm/op.hpp"
#include "lamina/kernels/sgd_step/op.hpp"

namespace lamina::nn {

namespace {

// Runs an update op over values and state, in place where the value has no other owner.
template <class Op>
void run_update(const typename Op::Attrs& attrs, std::span<Tensor> values, std::span<const Tensor> gradients,
                std::span<std::vector<Tensor>> state) {
  std::vector<Tensor> dense;  // gradients may be views
  dense.reserve(gradients.size());
  for (const Tensor& g : gradients) dense.push_back(contiguous(g));
  std::vector<Tensor> out;
  out.reserve(values.size() * (1 + state.size()));
  DeviceCounts counts;
  auto add_output = [&](Tensor& value) {
    const bool in_place = value.sole() && value.is_contiguous();
    (in_place ? counts.updates_in_place : counts.updates_copied) += 1;
    out.push_back(in_place ? value : Tensor::empty(value.device(), value.shape(), value.dtype()));
  };
  std::vector<const Tensor*> in;
  for (const Tensor& v : values) in.push_back(&v);
  for (const Tensor& g : dense) in.push_back(&g);
  for (std::vector<Tensor>& s : state) {
    for (const Tensor& t : s) in.push_back(&t);
  }
  for (Tensor& v : values) add_output(v);
  for (std::vector<Tensor>& s : state) {
    for (Tensor& t : s) add_output(t);
  }
  run_into(record_of<Op>, &attrs, in, out, true);
  values[0].storage().device().counters.add(counts);
  std::size_t o = 0;
  for (Tensor& v : values) v = std::move(out[o++]);
  for (std::vector<Tensor>& s : state) {
    for (Tensor& t : s) t = std::move(out[o++]);
  }
}

class Sgd final : public Optimizer {
 public:
  Sgd(std::vector<Module::NamedParam> params, const OptimizerOptions& options)
      : Optimizer(std::move(params), options,
                  options.momentum > 0 ? std::vector<std::string>{"velocity"} : std::vector<std::string>{}) {}

 protected:
  void step_group(std::span<Tensor> values, std::span<const Tensor> gradients, std::span<std::vector<Tensor>> state,
                  double lr, double decay, double gradient_scale) override {
    run_update<SgdStep>({.count = static_cast<int>(values.size()),
                         .lr = lr,
                         .momentum = options_.momentum,
                         .weight_decay = decay,
                         .nesterov = options_.nesterov,
                         .gradient_scale = gradient_scale},
                        values, gradients, state);
  }
};

class Adam final : public Optimizer {
 public:
  Adam(std::vector<Module::NamedParam> params, const OptimizerOptions& options)
      : Optimizer(std::move(params), options, {"mean", "square"}) {}

 protected:
  void step_group(std::span<Tensor> values, std::span<const Tensor> gradients, std::span<std::vector<Tensor>> state,
                  double lr, double decay, double gradient_scale) override {
    run_update<AdamStep>({.count = static_cast<int>(values.size()),
                          .lr = lr,
                          .beta1 = options_.beta1,
                          .beta2 = options_.beta2,
                          .epsilon = options_.epsilon,
                          .weight_decay = decay,
                          .decoupled = options_.name == "adamw",
                          .step = steps_ + 1,
                          .gradient_scale = gradient_scale},
                         values, gradients, state);
  }
};

void check(bool ok, std::string_view option, double value, std::string_view allowed) {
  if (!ok) fail<ValueError>("optimizer", "{} is {}; allowed: {}", option, value, allowed);
}

}  // namespace

Optimizer::Optimizer(std::vector<Module::NamedParam> params, OptimizerOptions options,
                     std::vector<std::string> state_names)
    : options_(std::move(options)),
      params_(std::move(params)),
      state_names_(std::move(state_names)),
      state_(state_names_.size(), std::vector<Tensor>(params_.size())) {}

void Optimizer::ensure_state(std::size_t i) {
  for (std::vector<Tensor>& s : state_) {
    if (s[i].defined()) continue;
    const Tensor value = params_[i].param->value();
    s[i] = Tensor::zeros(value.device(), value.shape(), value.dtype());
  }
}

std::vector<Optimizer::NamedTensor> Optimizer::state() {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < params_.size(); ++i) {
    ensure_state(i);
    for (std::size_t k = 0; k < state_.size(); ++k) {
      all.push_back({params_[i].name + "." + state_names_[k], &state_[k][i]});
    }
  }
  return all;
}

void Optimizer::step(const Gradients& gradients, double lr) {
  if (!std::isfinite(lr)) fail<ValueError>("optimizer", "learning rate {} is not finite", lr);
  double gradient_scale = 1;
  if (options_.clip > 0) {
    std::vector<Tensor> all;
    for (const Module::NamedParam& p : params_) {
      if (Tensor g = gradients.of(*p.param); g.defined()) all.push_back(contiguous(g));
    }
    last_norm_ = all.empty() ? 0 : global_norm(all).item();
    // A norm that is not finite leaves the gradients as they are: hiding it would hide the fault.
    if (std::isfinite(last_norm_) && last_norm_ > options_.clip) gradient_scale = options_.clip / last_norm_;
  }
  for (const bool decays : {true, false}) {
    std::vector<Param*> group;
    std::vector<std::size_t> index;
    std::vector<Tensor> group_gradients;
    for (std::size_t i = 0; i < params_.size(); ++i) {
      if (params_[i].decays != decays) continue;
      Tensor g = gradients.of(*params_[i].param);
      if (!g.defined()) continue;
      ensure_state(i);
      group.push_back(params_[i].param);
      index.push_back(i);
      group_gradients.push_back(std::move(g));
    }
    if (group.empty()) continue;
    std::vector<std::vector<Tensor>> group_state(state_.size());
    for (std::size_t k = 0; k < state_.size(); ++k) {
      for (const std::size_t i : index) group_state[k].push_back(std::move(state_[k][i]));
    }
    auto give_back = [&] {
      for (std::size_t k = 0; k < state_.size(); ++k) {
        for (std::size_t j = 0; j < index.size(); ++j) state_[k][index[j]] = std::move(group_state[k][j]);
      }
    };
    try {
      update(group, [&](std::span<Tensor> values) {
        step_group(values, group_gradients, group_state, lr, decays ? options_.weight_decay : 0, gradient_scale);
      });
    } catch (...) {
      give_back();
      throw;
    }
    give_back();
  }
  ++steps_;
}

std::unique_ptr<Optimizer> make_optimizer(std::vector<Module::NamedParam> params, const OptimizerOptions& options) {
  check(options.momentum >= 0 && options.momentum < 1, "momentum", options.momentum, "[0, 1)");
  check(options.beta1 >= 0 && options.beta1 < 1, "beta1", options.beta1, "[0, 1)");
  check(options.beta2 >= 0 && options.beta2 < 1, "beta2", options.beta2, "[0, 1)");
  check(options.epsilon > 0 && options.epsilon < 1, "epsilon", options.epsilon, "(0, 1)");
  check(options.weight_decay >= 0 && std::isfinite(options.weight_decay), "weight decay", options.weight_decay, ">= 0");
  check(options.clip >= 0 && std::isfinite(options.clip), "clip", options.clip, ">= 0");
  if (options.name == "sgd") return std::make_unique<Sgd>(std::move(params), options);
  if (options.name == "adam" || options.name == "adamw") return std::make_unique<Adam>(std::move(params), options);
  fail<ValueError>("optimizer", "unknown name '{}'; known: sgd, adam, adamw", options.name);
}

}  // namespace lamina::nn
