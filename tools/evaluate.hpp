// Evaluation of a model on a data set.
#pragma once

#include "lamina/models/data/dataset.hpp"
#include "lamina/nn/module.hpp"

namespace lamina::tools {

struct Evaluation {
  double loss = 0;      ///< mean over labels, nats
  double accuracy = 0;  ///< share of labels that are the largest output
  std::int64_t labels = 0;
};

/// Over the whole set in its own order, in batches; outside training (running statistics, no dropout). Ends early, with
/// what it has so far, once StopSignal has received one.
Evaluation evaluate(const nn::Module& model, const Dataset& dataset, const Device& device, DType dtype,
                    std::int64_t batch);

}  // namespace lamina::tools
