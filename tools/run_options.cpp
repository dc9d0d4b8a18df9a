#include "lamina/tools/run_options.hpp"

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "lamina/tools/device_kinds.hpp"

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

bool is_text(const RunOptions& o) { return o.data.starts_with("text:"); }

// May a run that goes on have another value?
enum class Change : bool { refused, allowed };

// Every setting once: f(flag, value, change, in force). Settings that depend on others come after them.
template <class Options, class F>
void each_setting(Options& o, F&& f) {
  f("model", o.model, Change::refused, true);
  f("data", o.data, Change::refused, true);
  f("data-dir", o.data_dir, Change::allowed, !o.data_dir.empty());
  f("context", o.context, Change::refused, is_text(o));
  f("augment", o.augment, Change::refused, !is_text(o));
  f("dtype", o.dtype, Change::refused, true);
  f("seed", o.seed, Change::refused, true);
  f("batch", o.batch, Change::refused, true);
  f("steps", o.steps, Change::allowed, o.steps > 0);
  f("epochs", o.epochs, Change::allowed, o.steps == 0);
  f("lr", o.lr, Change::refused, true);
  f("lr-schedule", o.lr_schedule, Change::refused, true);
  f("optimizer", o.optimizer.name, Change::refused, true);
  f("momentum", o.optimizer.momentum, Change::refused, o.optimizer.name == "sgd");
  f("nesterov", o.optimizer.nesterov, Change::refused, o.optimizer.name == "sgd");
  f("weight-decay", o.optimizer.weight_decay, Change::refused, true);
  f("clip", o.optimizer.clip, Change::refused, true);
  f("label-smoothing", o.label_smoothing, Change::refused, true);
  f("eval-every", o.eval_every, Change::allowed, true);
  f("checkpoint-every", o.checkpoint_every, Change::allowed, !o.checkpoint.empty());
  f("keep", o.keep, Change::allowed, !o.checkpoint.empty());
}

// A flag that was given and does nothing would leave its user believing otherwise.
void check_effect(const RunOptions& o) {
  const auto given = [&](std::string_view flag) { return o.given.contains(flag); };
  if (o.checkpoint.empty()) {
    for (const std::string_view flag : {"resume", "checkpoint-every", "keep"}) {
      if (given(flag)) fail<ValueError>(fmt::format("--{}", flag), "needs --checkpoint DIR");
    }
  }
  for (const std::string_view flag : {"momentum", "nesterov"}) {
    if (given(flag) && o.optimizer.name != "sgd") {
      fail<ValueError>(fmt::format("--{}", flag), "is for sgd; the optimizer is {}", o.optimizer.name);
    }
  }
  if (given("context") && !is_text(o)) fail<ValueError>("--context", "is for text; the data is {}", o.data);
  if (given("epochs") && given("steps")) fail<ValueError>("--epochs", "a run's length is in epochs or in --steps");
  if (given("trace-steps") && o.trace.empty() && o.report.empty()) {
    fail<ValueError>("--trace-steps", "needs --trace FILE or --report FILE");
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
  check_effect(o);
  check_outputs(o);
  nn::parse_lr_schedule(o.lr_schedule, o.lr, 1);
  nn::make_optimizer({}, o.optimizer);
}

Device open_device(const RunOptions& o) { return open_device(o.devices, static_cast<int>(o.threads)); }

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

nlohmann::json settings(const RunOptions& o) {
  nlohmann::json values = nlohmann::json::object();
  each_setting(o, [&](const char* name, const auto& value, Change, bool in_force) {
    if (in_force) values[name] = value;
  });
  return values;
}

void restore_settings(RunOptions& o, const nlohmann::json& saved, bool same_run) {
  if (!saved.is_object()) fail<FormatError>("checkpoint", "its settings are {}, not an object", saved.type_name());
  // One length of the run replaces the other, and another data set has its own folder.
  const bool length_given = o.given.contains("epochs") || o.given.contains("steps");
  each_setting(o, [&]<class T>(const std::string& name, T& value, Change change, bool in_force) {
    if ((name == "epochs" || name == "steps") && length_given) return;
    if (name == "data-dir" && o.given.contains("data")) return;
    const auto place = saved.find(name);
    if (o.given.contains(name)) {
      if (!same_run || change == Change::allowed || place == saved.end()) return;
      if (const T theirs = place->template get<T>(); theirs != value) {
        fail<ValueError>("--resume", "the checkpoint was made with --{} {}, this run has {}", name,
                         nlohmann::json(theirs).dump(), nlohmann::json(value).dump());
      }
    } else if (place != saved.end()) {
      value = place->template get<T>();
    } else if (in_force && change == Change::refused) {
      fail<FormatError>("checkpoint", "its settings do not have '{}'", name);
    }
  });
}

}  // namespace lamina::tools
