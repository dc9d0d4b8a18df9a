#include "lamina/models/registry.hpp"

#include "lamina/core/options.hpp"
#include "lamina/models/mlp.hpp"
#include "lamina/models/resnet.hpp"
#include "lamina/models/transformer.hpp"

namespace lamina::models {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

// "1024x8" means eight layers of 1024; "512x256x128" lists widths. Two numbers are width and count.
std::vector<std::int64_t> widths_of(NamedOptions& options) {
  std::vector<std::int64_t> given = options.integers("widths", {256, 2});
  if (given.size() == 2) {
    if (given[1] > 1024) fail<ValueError>("model mlp", "{} layers of width {}; at most 1024", given[1], given[0]);
    given = std::vector<std::int64_t>(static_cast<std::size_t>(given[1]), given[0]);
  }
  for (const std::int64_t w : given) {
    if (w < 1 || w > kLargest) fail<ValueError>("model mlp", "width {}; allowed: 1 to {}", w, kLargest);
  }
  return given;
}

std::int64_t image_channels(const std::string& name, const ModelInput& input) {
  if (input.tokens || input.example.rank() != 3) {
    fail<ValueError>("model " + name, "needs images (C,H,W); the data has examples of shape {}",
                     to_string(input.example));
  }
  return input.example[0];
}

}  // namespace

std::string known_models() {
  return "mlp, resnet8, resnet20, resnet32, resnet44, resnet56, resnet18, resnet34, resnet50, transformer";
}

std::unique_ptr<nn::Sequential> make_model(const std::string& spec, const ModelInput& input, nn::Builder& builder) {
  NamedOptions options("model", spec);
  const std::string& name = options.name();
  std::unique_ptr<nn::Sequential> model;
  if (name == "mlp") {
    if (input.tokens) fail<ValueError>("model mlp", "takes numbers; the data has tokens");
    MlpOptions mlp{.inputs = input.example.count(), .widths = widths_of(options), .outputs = input.classes};
    mlp.dropout = options.number("dropout", 0, 0, 0.99);
    options.finish();
    return make_mlp(builder, mlp);
  }
  if (name == "transformer") {
    if (!input.tokens)
      fail<ValueError>("model transformer", "takes tokens; the data has numbers of shape {}", to_string(input.example));
    TransformerOptions t{.vocabulary = input.classes};
    t.layers = options.integer("layers", 4, 0, 1024);
    t.width = options.integer("width", 128, 1, kLargest);
    t.heads = options.integer("heads", t.width % 4 == 0 ? 4 : 1, 1, t.width);
    t.hidden = options.integer("hidden", 0, 0, kLargest);
    t.context = options.integer("context", input.example.count(), 1, kLargest);
    t.dropout = options.number("dropout", 0, 0, 0.99);
    options.finish();
    return make_transformer(builder, t);
  }
  for (const std::int64_t depth : {8, 20, 32, 44, 56}) {
    if (name != fmt::format("resnet{}", depth)) continue;
    CifarResNetOptions r{.depth = depth, .channels = image_channels(name, input), .outputs = input.classes};
    r.width = options.integer("width", 16, 1, 4096);
    options.finish();
    return make_resnet(builder, r);
  }
  for (const std::int64_t depth : {18, 34, 50}) {
    if (name != fmt::format("resnet{}", depth)) continue;
    ImageNetResNetOptions r{.depth = depth, .channels = image_channels(name, input), .outputs = input.classes};
    r.zero_init = options.integer("zero_init", 1, 0, 1) != 0;
    options.finish();
    return make_resnet(builder, r);
  }
  fail<ValueError>("model", "unknown name '{}'; known: {}", name, known_models());
}

}  // namespace lamina::models
