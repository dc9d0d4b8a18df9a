#include "lamina/models/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "lamina/core/options.hpp"
#include "lamina/models/mlp.hpp"
#include "lamina/models/resnet.hpp"
#include "lamina/models/transformer.hpp"

namespace lamina::models {

namespace {

constexpr std::int64_t kLargest = std::int64_t{1} << 24;

using Maker = std::function<std::unique_ptr<nn::Sequential>(nn::Builder&)>;

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

std::int64_t depth_of(std::string_view name) {
  std::int64_t depth = 0;
  const std::string_view digits = name.substr(std::string_view("resnet").size());
  std::from_chars(digits.data(), digits.data() + digits.size(), depth);
  return depth;
}

Maker read_mlp(NamedOptions& options, const ModelInput& input) {
  if (input.tokens) fail<ValueError>("model mlp", "takes numbers; the data has tokens");
  MlpOptions mlp{.inputs = input.example.count(), .widths = widths_of(options), .outputs = input.classes};
  mlp.dropout = options.number("dropout", 0, 0, 0.99);
  return [mlp](nn::Builder& builder) { return make_mlp(builder, mlp); };
}

Maker read_transformer(NamedOptions& options, const ModelInput& input) {
  if (!input.tokens) {
    fail<ValueError>("model transformer", "takes tokens; the data has numbers of shape {}", to_string(input.example));
  }
  const std::int64_t length = input.example.count();
  TransformerOptions t{.vocabulary = input.classes};
  t.layers = options.integer("layers", 4, 0, 1024);
  t.width = options.integer("width", 128, 1, kLargest);
  t.heads = options.integer("heads", t.width % 4 == 0 ? 4 : 1, 1, t.width);
  t.hidden = options.integer("hidden", 0, 0, kLargest);
  t.context = options.integer("context", length, 1, kLargest);
  if (t.context < length) {
    fail<ValueError>("model transformer: option context", "{} is too small for examples of {} tokens", t.context,
                     length);
  }
  t.dropout = options.number("dropout", 0, 0, 0.99);
  return [t](nn::Builder& builder) { return make_transformer(builder, t); };
}

Maker read_cifar_resnet(NamedOptions& options, const ModelInput& input) {
  CifarResNetOptions r{
      .depth = depth_of(options.name()), .channels = image_channels(options.name(), input), .outputs = input.classes};
  r.width = options.integer("width", 16, 1, 4096);
  return [r](nn::Builder& builder) { return make_resnet(builder, r); };
}

Maker read_imagenet_resnet(NamedOptions& options, const ModelInput& input) {
  ImageNetResNetOptions r{
      .depth = depth_of(options.name()), .channels = image_channels(options.name(), input), .outputs = input.classes};
  r.zero_init = options.integer("zero_init", 1, 0, 1) != 0;
  return [r](nn::Builder& builder) { return make_resnet(builder, r); };
}

struct Family {
  std::vector<std::string> names;
  Maker (*read)(NamedOptions& options, const ModelInput& input);
  bool tokens;
  std::string_view about;  // what the options' names do not say
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {{"mlp"}, read_mlp, false, "widths of the hidden layers: WIDTHxCOUNT, or three and more one by one"},
      {{"resnet8", "resnet20", "resnet32", "resnet44", "resnet56"},
       read_cifar_resnet,
       false,
       "width: channels of the stem"},
      {{"resnet18", "resnet34", "resnet50"}, read_imagenet_resnet, false, "zero_init: last gains of blocks start at 0"},
      {{"transformer"}, read_transformer, true, "hidden 0: 4 width; context: the data's"}};
  return all;
}

}  // namespace

std::string known_models() {
  std::string text;
  for (const Family& family : families()) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", fmt::join(family.names, ", "));
  }
  return text;
}

std::vector<ModelHelp> model_help() {
  std::vector<ModelHelp> help;
  for (const Family& family : families()) {
    NamedOptions options("model", family.names.front());
    family.read(options, {.example = family.tokens ? Shape{128} : Shape{3, 32, 32}, .tokens = family.tokens});
    help.push_back({fmt::format("{}", fmt::join(family.names, ", ")), options.defaults(), std::string(family.about)});
  }
  return help;
}

std::unique_ptr<nn::Sequential> make_model(const std::string& spec, const ModelInput& input, nn::Builder& builder) {
  NamedOptions options("model", spec);
  for (const Family& family : families()) {
    if (std::ranges::find(family.names, options.name()) == family.names.end()) continue;
    const Maker make = family.read(options, input);
    options.finish();
    return make(builder);
  }
  fail<ValueError>("model", "unknown name '{}'; known: {}", options.name(), known_models());
}

}  // namespace lamina::models
