#include "lamina/tools/run_options.hpp"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/example/device.hpp"

namespace lamina::tools {

namespace {

void at_least(std::string_view flag, std::int64_t value, std::int64_t least) {
  if (value < least) fail<ValueError>(flag, "{} is too small; at least {}", value, least);
}

void at_most(std::string_view flag, std::int64_t value, std::int64_t most) {
  if (value > most) fail<ValueError>(flag, "{} is too large; at most {}", value, most);
}

// Two outputs in one file, or one in a checkpoint's file, would leave only the last written.
void check_outputs(const RunOptions& o) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::map<fs::path, std::string_view> taken;
  const fs::path checkpoints =
      o.checkpoint.empty() ? fs::path() : fs::weakly_canonical(fs::absolute(o.checkpoint, ignored), ignored);
  for (const auto& [flag, file] : {std::pair<std::string_view, const std::string&>{"--json", o.json},
                                   {"--trace", o.trace},
                                   {"--report", o.report},
                                   {"--metrics", o.metrics}}) {
    if (file.empty()) continue;
    const fs::path path = fs::weakly_canonical(fs::absolute(file, ignored), ignored);
    const auto [other, fresh] = taken.emplace(path, flag);
    if (!fresh) fail<ValueError>(flag, "{} is the file of {} too", file, other->second);
    if (!checkpoints.empty() && path.parent_path() == checkpoints && path.filename().native().starts_with("step-")) {
      fail<ValueError>(flag, "{} has the name of a checkpoint's file", file);
    }
  }
}

}  // namespace

void check(const RunOptions& o) {
  if (o.strategy != "backprop") fail<ValueError>("--strategy", "unknown name '{}'; known: backprop", o.strategy);
  if (o.workers != 1) fail<ValueError>("--workers", "{} workers; backprop runs on 1", o.workers);
  at_least("--batch", o.batch, 1);
  at_least("--epochs", o.epochs, 0);
  at_least("--steps", o.steps, 0);
  at_least("--threads", o.threads, 0);
  at_least("--keep", o.keep, 1);
  at_least("--eval-every", o.eval_every, 0);
  at_least("--checkpoint-every", o.checkpoint_every, 0);
  at_least("--context", o.context, 1);
  at_least("--trace-steps", o.trace_steps, 0);
  at_most("--keep", o.keep, 1'000'000);
  at_most("--batch", o.batch, std::int64_t{1} << 31);
  at_most("--context", o.context, std::int64_t{1} << 31);
  if (o.threads > 4096) fail<ValueError>("--threads", "{} is too large; at most 4096", o.threads);
  if (!(std::isfinite(o.lr) && o.lr >= 0)) fail<ValueError>("--lr", "{} is not a finite number >= 0", o.lr);
  if (!(o.label_smoothing >= 0 && o.label_smoothing < 1)) {
    fail<ValueError>("--label-smoothing", "{} is outside [0, 1)", o.label_smoothing);
  }
  if (o.dtype != "f32" && o.dtype != "f64")
    fail<ValueError>("--dtype", "'{}' cannot be trained in; known: f32, f64", o.dtype);
  if (o.resume && o.checkpoint.empty()) fail<ValueError>("--resume", "needs --checkpoint DIR to resume from");
  if (o.optimizer.nesterov && o.optimizer.name != "sgd") {
    fail<ValueError>("--nesterov", "is for sgd; the optimizer is {}", o.optimizer.name);
  }
  if (o.trace_steps > 0 && o.trace.empty() && o.report.empty()) {
    fail<ValueError>("--trace-steps", "needs --trace FILE or --report FILE");
  }
  check_outputs(o);
  if (o.new_horizon && !o.resume) fail<ValueError>("--new-horizon", "goes with --resume only");
  if (o.checkpoint_every > 0 && o.checkpoint.empty()) fail<ValueError>("--checkpoint-every", "needs --checkpoint DIR");
  nn::parse_lr_schedule(o.lr_schedule, o.lr, 1);
  nn::make_optimizer({}, o.optimizer);
}

Device open_device(const RunOptions& o) {
  if (o.devices == "cpu") return cpu_device({.threads = static_cast<int>(o.threads)});
  if (o.devices == "example") return example_device();
  fail<ValueError>("--devices", "unknown device '{}'; known: cpu, example", o.devices);
}

std::shared_ptr<const Dataset> open_split(const RunOptions& o, Split split) {
  DatasetOptions options{.split = split, .folder = o.data_dir, .context = o.context, .seed = o.seed};
  if (o.augment) options.augment.emplace();
  return open_dataset(o.data, options);
}

models::ModelInput model_input(const Dataset& dataset) {
  return {
      .example = dataset.input().shape, .classes = dataset.classes(), .tokens = !is_floating(dataset.input().dtype)};
}

std::unique_ptr<nn::Sequential> open_model(const RunOptions& o, const Dataset& dataset, const Device& device) {
  nn::Builder builder{.device = device, .seed = o.seed, .dtype = dtype_from_name(o.dtype)};
  return models::make_model(o.model, model_input(dataset), builder);
}

nlohmann::json identity(const RunOptions& o) {
  return {{"model", o.model},
          {"data", o.data},
          {"dtype", o.dtype},
          {"batch", o.batch},
          {"seed", o.seed},
          {"context", o.context},
          {"augment", o.augment},
          {"label-smoothing", o.label_smoothing},
          {"lr", o.lr},
          {"lr-schedule", o.lr_schedule},
          {"optimizer", o.optimizer.name},
          {"momentum", o.optimizer.momentum},
          {"nesterov", o.optimizer.nesterov},
          {"weight-decay", o.optimizer.weight_decay},
          {"clip", o.optimizer.clip}};
}

}  // namespace lamina::tools
