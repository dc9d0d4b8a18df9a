// Models by name and options, as the command line gives them: "mlp:widths=1024x8", "resnet8",
// "transformer:layers=4,width=128,context=128".
#pragma once

#include <memory>
#include <string>

#include "lamina/nn/module.hpp"

namespace lamina::models {

/// What a model is fed, from the data set.
struct ModelInput {
  Shape example;              ///< of one input, without the batch: (C,H,W), (D), or (T) for tokens
  std::int64_t classes = 10;  ///< outputs; the vocabulary for tokens
  bool tokens = false;
};

/// Throws ValueError naming the known models or options, or what the input does not fit.
std::unique_ptr<nn::Sequential> make_model(const std::string& spec, const ModelInput& input, nn::Builder& builder);

/// "mlp, resnet8, ..." for messages and help.
std::string known_models();

/// What a help text says of models that share their options.
struct ModelHelp {
  std::string names;     ///< "resnet18, resnet34"
  std::string defaults;  ///< "width=16,..."
  std::string about;
};
std::vector<ModelHelp> model_help();

}  // namespace lamina::models
