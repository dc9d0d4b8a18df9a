// Optimisers: each step is one kernel call over all parameters of a group. A parameter is written in place when nobody
// else holds its value; else a new version is made (weight stashing falls out of this). The device counts both.
//
// Order of a training step: take the gradients, drop the tape and its vars, step. Not thread-safe; other threads may
// read the parameters meanwhile (autograd/param.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamina/nn/module.hpp"

namespace lamina::nn {

struct OptimizerOptions {
  std::string name = "sgd";  ///< sgd, adam, adamw
  double momentum = 0.9;     ///< sgd
  bool nesterov = false;     ///< sgd
  double beta1 = 0.9;        ///< adam, adamw
  double beta2 = 0.999;      ///< adam, adamw
  double epsilon = 1e-8;     ///< adam, adamw; added after the bias correction
  double weight_decay = 0;   ///< sgd, adam: added to the gradient; adamw: decoupled, scaled by the rate
  double clip = 0;           ///< largest global norm of the gradients; 0: no clipping
};

class Optimizer {
 public:
  struct NamedTensor {
    std::string name;  ///< "<parameter>.<state>": "0.weight.velocity"
    Tensor* tensor;
  };
  virtual ~Optimizer() = default;

  /// One update at rate `lr`. A parameter without a gradient is left alone, decay and moments included. Throws
  /// ValueError for a rate that is not finite; nothing is written then.
  void step(const Gradients& gradients, double lr);

  /// Updates made.
  std::int64_t steps() const noexcept { return steps_; }
  /// Global norm of the last step's gradients before clipping; 0 when clipping is off.
  double last_norm() const noexcept { return last_norm_; }

  /// The state a checkpoint holds, made if it is not there yet. Valid until the next step.
  std::vector<NamedTensor> state();
  /// Sets the counter that bias corrections use, when state is restored.
  void restore_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  Optimizer(std::vector<Module::NamedParam> params, OptimizerOptions options, std::vector<std::string> state_names);
  /// Runs the kernel over one group: values, gradients and state tensors have one entry a parameter.
  virtual void step_group(std::span<Tensor> values, std::span<const Tensor> gradients,
                          std::span<std::vector<Tensor>> state, double lr, double decay, double gradient_scale) = 0;

  const OptimizerOptions options_;
  std::int64_t steps_ = 0;

 private:
  void ensure_state(std::size_t i);

  std::vector<Module::NamedParam> params_;
  std::vector<std::string> state_names_;
  std::vector<std::vector<Tensor>> state_;  // by state name, then parameter
  double last_norm_ = 0;
};

/// Throws ValueError for an unknown name or options outside their range, naming what is allowed.
std::unique_ptr<Optimizer> make_optimizer(std::vector<Module::NamedParam> params, const OptimizerOptions& options);

}  // namespace lamina::nn
