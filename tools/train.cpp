#include "lamina/tools/train.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "lamina/core/io/atomic_file.hpp"
#include "lamina/core/io/json.hpp"
#include "lamina/core/trace.hpp"
#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/models/data/loader.hpp"
#include "lamina/nn/checkpoint.hpp"
#include "lamina/tools/build_info.hpp"
#include "lamina/tools/evaluate.hpp"
#include "lamina/tools/memory_need.hpp"
#include "lamina/tools/message.hpp"
#include "lamina/tools/progress.hpp"
#include "lamina/tools/report/page.hpp"
#include "lamina/tools/stop_signal.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

nlohmann::json to_json(const RunRecord::Point& p) {
  auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(nullptr); };
  return {{"step", p.step},
          {"examples", p.examples},
          {"wall_s", number(p.wall_s)},
          {"train_loss", number(p.train_loss)},
          {"test_loss", number(p.test_loss)},
          {"test_accuracy", number(p.test_accuracy)},
          {"lr", number(p.lr)}};
}

RunRecord::Point point_from(const nlohmann::json& j) {
  auto number = [&](const char* key) { return j.contains(key) && j[key].is_number() ? j[key].get<double>() : kAbsent; };
  return {.step = j.value("step", std::int64_t{0}),
          .examples = j.value("examples", std::int64_t{0}),
          .wall_s = number("wall_s"),
          .train_loss = number("train_loss"),
          .test_loss = number("test_loss"),
          .test_accuracy = number("test_accuracy"),
          .lr = number("lr")};
}

nn::CheckpointStore::Loaded newest_checkpoint(const RunOptions& options, std::string_view what) {
  std::vector<std::string> skipped;
  std::optional<nn::CheckpointStore::Loaded> loaded = nn::CheckpointStore::newest(options.checkpoint, &skipped);
  if (!loaded) {
    fail<IoError>(what, "no complete checkpoint in {}{}", options.checkpoint,
                  skipped.empty() ? "" : "; passed over: " + skipped.front());
  }
  for (const std::string& reason : skipped) {
    if (!options.quiet) print_message(fmt::format("passed over a damaged checkpoint: {}", reason));
  }
  return std::move(*loaded);
}

// Runs what reads a manifest's state, which may hold anything.
template <class F>
void reading_checkpoint(const RunOptions& options, const nn::CheckpointStore::Loaded& loaded, F&& f) {
  try {
    f();
  } catch (const nlohmann::json::exception& e) {
    fail<FormatError>("checkpoint", "step {} in {}: its manifest's state is damaged: {}", loaded.step,
                      options.checkpoint, e.what());
  }
}

void take_settings(RunOptions& options, const nn::CheckpointStore::Loaded& loaded, bool same_run) {
  reading_checkpoint(options, loaded, [&] { restore_settings(options, loaded.state.at("settings"), same_run); });
}

// Over the last twentieth of the steps: one step's loss is mostly noise, and a whole epoch's begins where it began.
double final_train_loss(const std::vector<RunRecord::Point>& history, std::int64_t steps) {
  double sum = 0;
  std::int64_t count = 0;
  std::int64_t before = 0;
  for (const RunRecord::Point& p : history) {
    if (p.step > steps - std::max<std::int64_t>(steps / 20, 1)) {
      sum += p.train_loss * static_cast<double>(p.step - before);
      count += p.step - before;
    }
    before = p.step;
  }
  return count > 0 ? sum / static_cast<double>(count) : kAbsent;
}

// One training run: the state between steps and what is done at and between them.
class Run {
 public:
  /// `from`: the checkpoint to go on from, if any; its settings are in the options already.
  Run(const RunOptions& options, std::optional<nn::CheckpointStore::Loaded> from);
  int execute();

 private:
  void restore(const nn::CheckpointStore::Loaded& loaded);
  void require_finite_weights() const;
  void train_step();
  void evaluate_now();
  void save_checkpoint();
  void finish();
  std::int64_t epoch_steps() const { return loader_->batches_per_epoch(); }
  bool due(std::int64_t every) const {
    const std::int64_t period = every > 0 ? every : epoch_steps();
    return step_ % period == 0 || step_ == total_steps_;
  }

  const RunOptions& options_;
  DType dtype_;
  Device device_;
  std::shared_ptr<const Dataset> train_set_, test_set_;
  std::unique_ptr<nn::Sequential> model_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::optional<Loader> loader_;
  nn::LrSchedule schedule_;
  std::int64_t total_steps_ = 0;

  std::int64_t step_ = 0;
  std::int64_t first_step_ = 0;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint
  std::int64_t examples_ = 0;
  std::int64_t flops_ = 0;
  std::int64_t peak_bytes_ = 0;
  double flops_sequential_ = 0;
  double trained_s_ = 0;  // in steps
  double earlier_s_ = 0;  // of the runs this one continues
  double saved_s_ = 0;    // in writing checkpoints
  double loss_ = kAbsent;
  double loss_sum_ = 0;  // since the last history point
  std::int64_t loss_steps_ = 0;
  std::vector<double> step_s_;
  std::vector<RunRecord::Point> history_;
  Evaluation last_;
  bool evaluated_ = false;

  std::optional<nn::CheckpointStore> store_;
  std::optional<JsonLines> metrics_;
  std::optional<Trace> trace_;
  Trace* tracing_ = nullptr;  // while a traced step runs
  std::optional<Progress> progress_;
};

Run::Run(const RunOptions& options, std::optional<nn::CheckpointStore::Loaded> from)
    : options_(options), dtype_(dtype_from_name(options.dtype)) {
  train_set_ = open_split(options, Split::train);
  test_set_ = open_split(options, Split::test);
  if (!(train_set_->input() == test_set_->input())) {
    fail<FormatError>("--data", "{}: training examples are {}{}, test examples {}{}", options.data,
                      name_of(train_set_->input().dtype), to_string(train_set_->input().shape),
                      name_of(test_set_->input().dtype), to_string(test_set_->input().shape));
  }
  require_memory(options, *train_set_, true);
  device_ = open_device(options);
  loader_.emplace(
      train_set_, device_,
      LoaderOptions{.batch = options.batch, .drop_last = options.batch <= train_set_->size(), .seed = options.seed});
  if (options.steps > 0) {
    total_steps_ = options.steps;
  } else if (__builtin_mul_overflow(options.epochs, epoch_steps(), &total_steps_)) {
    fail<ValueError>("--epochs", "{} epochs of {} steps are more than 2^63 - 1 steps", options.epochs, epoch_steps());
  }
  schedule_ = nn::parse_lr_schedule(options.lr_schedule, options.lr, total_steps_);
  model_ = open_model(options, *train_set_, device_);
  optimizer_ = nn::make_optimizer(model_->parameters(), options.optimizer);
  // Files are opened before the work, so that a folder that cannot be written is found now.
  for (const std::string& file : {options.json, options.trace, options.report}) {
    if (!file.empty()) AtomicFile probe(file);
  }
  if (!options.checkpoint.empty()) {
    if (from) reading_checkpoint(options, *from, [&] { restore(*from); });
    store_.emplace(options.checkpoint, static_cast<int>(options.keep));
    if (const auto newest = store_->newest_step(); newest && !options.resume) {
      fail<ValueError>("--checkpoint",
                       "{} holds a run's checkpoints, up to step {}; go on from them by --resume, or "
                       "give another folder",
                       options.checkpoint, *newest);
    }
  }
  if (!options.metrics.empty()) {
    metrics_.emplace(options.metrics, options.resume ? JsonLines::Mode::append : JsonLines::Mode::truncate);
  }
  if (!options.trace.empty() || !options.report.empty()) {
    trace_.emplace();
    trace_->set_thread_lane(trace_->lane(0, "compute"));
  }
}

void Run::restore(const nn::CheckpointStore::Loaded& loaded) {
  const nlohmann::json& state = loaded.state;
  const std::int64_t horizon = state.at("total_steps").get<std::int64_t>();
  const bool length_given = options_.given.contains("epochs") || options_.given.contains("steps");
  if (total_steps_ != horizon) {
    if (!length_given) {
      fail<ValueError>("--resume",
                       "the checkpoint's run is {} steps long, with the data as it is now {}; --steps says "
                       "which",
                       horizon, total_steps_);
    }
    if (total_steps_ < loaded.step) {
      fail<ValueError>("--resume", "the checkpoint is of step {}, this run would end at {}", loaded.step, total_steps_);
    }
    if (!options_.quiet) print_message(fmt::format("the run is {} steps long now, it was {}", total_steps_, horizon));
  }
  nn::restore_state(loaded.tensors, *model_, optimizer_.get());
  step_ = first_step_ = saved_step_ = loaded.step;
  optimizer_->restore_steps(state.value("optimizer_steps", step_));
  const nlohmann::json& at = state.at("position");
  loader_->seek(
      {at.at("epoch").get<std::int64_t>(), at.at("batch").get<std::int64_t>(), at.at("examples").get<std::int64_t>()});
  examples_ = loader_->position().examples;
  flops_ = state.value("flops", std::int64_t{0});
  flops_sequential_ = state.value("flops_sequential", 0.0);
  earlier_s_ = state.value("wall_s", 0.0);
  loss_sum_ = state.value("loss_sum", 0.0);
  loss_steps_ = state.value("loss_steps", std::int64_t{0});
  for (const nlohmann::json& p : state.value("history", nlohmann::json::array())) history_.push_back(point_from(p));
  const std::string isa = state.value("isa", build_info().isa);
  if (isa != build_info().isa && !options_.quiet) {
    print_message(
        fmt::format("the checkpoint was made on {}, this machine runs {}: bits may differ", isa, build_info().isa));
  }
}

// A step whose loss was finite may still have ruined the weights: that must not replace good checkpoints.
void Run::require_finite_weights() const {
  std::vector<Tensor> values;
  for (const nn::Module::NamedParam& p : model_->parameters()) values.push_back(p.param->value());
  if (values.empty() || std::isfinite(global_norm(values).item())) return;
  fail<Error>("train",
              "the weights are not finite after step {}; a smaller --lr or --clip may help, earlier "
              "checkpoints are intact",
              step_);
}

void Run::save_checkpoint() {
  if (step_ == saved_step_) return;
  require_finite_weights();
  const auto start = Clock::now();
  TraceSpan span(tracing_, "checkpoint", "checkpoint", {.step = step_});
  nlohmann::json history = nlohmann::json::array();
  for (const RunRecord::Point& p : history_) history.push_back(to_json(p));
  const LoaderPosition at = loader_->position();
  store_->save(step_, nn::state_of(*model_, optimizer_.get()),
               {{"settings", settings(options_)},
                {"total_steps", total_steps_},
                {"optimizer_steps", optimizer_->steps()},
                {"position", {{"epoch", at.epoch}, {"batch", at.batch}, {"examples", at.examples}}},
                {"flops", flops_},
                {"flops_sequential", flops_sequential_},
                {"wall_s", earlier_s_ + trained_s_},
                {"loss_sum", loss_sum_},
                {"loss_steps", loss_steps_},
                {"isa", build_info().isa},
                {"history", std::move(history)}});
  saved_step_ = step_;
  saved_s_ += seconds(Clock::now() - start);
}

void Run::train_step() {
  const auto start = Clock::now();
  Trace* trace = tracing_;
  TraceSpan step_span(trace, "step", "step", {.step = step_});
  const std::int64_t flops_before = device_.counts().flops;
  std::int64_t flops_of_batch = 0;  // forward and backward

  Batch batch;
  {
    TraceSpan span(trace, "load", "input", {.step = step_});
    batch = loader_->next();
  }
  const std::int64_t size = batch.size();
  const double lr = schedule_.at(step_);
  Gradients gradients;
  {
    Tape tape(Tape::Mode::record, {.seed = options_.seed, .step = static_cast<std::uint64_t>(step_)});
    Tensor inputs =
        is_floating(batch.inputs.dtype()) && batch.inputs.dtype() != dtype_ ? cast(batch.inputs, dtype_) : batch.inputs;
    TraceSpan forward(trace, "forward", "forward", {.step = step_});
    const Var loss = cross_entropy((*model_)(tape.constant(std::move(inputs))), batch.labels,
                                   {.label_smoothing = options_.label_smoothing});
    forward.end();
    loss_ = loss.value().item();
    if (!std::isfinite(loss_)) {
      fail<Error>("train",
                  "the loss is {} at step {}; a smaller --lr or --clip may help, earlier checkpoints are intact", loss_,
                  step_);
    }
    TraceSpan backward(trace, "backward", "backward", {.step = step_});
    gradients = tape.backward(loss);
    flops_of_batch = device_.counts().flops - flops_before;
  }
  {
    TraceSpan span(trace, "update", "update", {.step = step_});
    optimizer_->step(gradients, lr);
  }
  step_span.end();
  ++step_;
  examples_ += size;
  const std::int64_t flops = device_.counts().flops - flops_before;
  flops_ += flops;
  flops_sequential_ += static_cast<double>(flops_of_batch) / static_cast<double>(std::max<std::int64_t>(size, 1)) +
                       static_cast<double>(flops - flops_of_batch);
  peak_bytes_ = std::max(peak_bytes_, device_.memory().peak_bytes);
  step_s_.push_back(seconds(Clock::now() - start));
  trained_s_ += step_s_.back();
  loss_sum_ += loss_;
  ++loss_steps_;
}

void Run::evaluate_now() {
  TraceSpan span(tracing_, "evaluate", "evaluate", {.step = step_});
  last_ = evaluate(*model_, *test_set_, device_, dtype_, std::max<std::int64_t>(options_.batch, 100));
  evaluated_ = true;
}

int Run::execute() {
  StopSignal signals;
  if (options_.resume && first_step_ == total_steps_) {
    if (!options_.quiet) {
      print_message(fmt::format("the run in {} is finished, at step {}; --epochs or --steps make it longer",
                                options_.checkpoint, total_steps_));
    }
    if (options_.json.empty() && options_.report.empty()) return 0;
  }
  progress_.emplace(Progress::Options{.style = options_.quiet ? Progress::Style::quiet : Progress::Style::automatic,
                                      .total_steps = total_steps_,
                                      .first_step = first_step_});
  // Every run of a day's length keeps a few hundred history points.
  const std::int64_t history_every = std::max<std::int64_t>(1, total_steps_ / 400);
  if (store_ && step_ == 0) save_checkpoint();
  const std::int64_t first_examples = examples_;
  // A few steps past the first ones are enough for the report; a trace is of every step unless told otherwise.
  const bool every = !options_.trace.empty() && options_.trace_steps == 0;
  const std::int64_t window = options_.trace_steps > 0 ? options_.trace_steps : 3;
  const std::int64_t traced_from =
      every ? first_step_ : std::max(first_step_, std::min(first_step_ + 5, total_steps_ - window));
  const std::int64_t traced_to = every ? total_steps_ : traced_from + window;
  int stopped = 0;
  while (step_ < total_steps_ && (stopped = StopSignal::received()) == 0) {
    tracing_ = trace_ && step_ >= traced_from && step_ < traced_to ? &*trace_ : nullptr;
    device_.set_trace(tracing_);
    const double lr = schedule_.at(step_);
    train_step();
    device_.set_trace(nullptr);
    progress_->update({.step = step_, .examples = examples_ - first_examples, .loss = loss_});
    const bool evaluating = due(options_.eval_every);
    if (evaluating || step_ % history_every == 0) {
      RunRecord::Point point{.step = step_,
                             .examples = examples_,
                             .wall_s = earlier_s_ + trained_s_,
                             .train_loss = loss_sum_ / static_cast<double>(std::max<std::int64_t>(loss_steps_, 1)),
                             .lr = lr};
      if (evaluating) {
        evaluate_now();
        if ((stopped = StopSignal::received()) != 0) break;
        point.test_loss = last_.loss;
        point.test_accuracy = last_.accuracy;
        progress_->message(fmt::format("step {}: train loss {:.4f}, test loss {:.4f}, test accuracy {:.2f} %", step_,
                                       point.train_loss, last_.loss, 100 * last_.accuracy));
      }
      loss_sum_ = 0;
      loss_steps_ = 0;
      history_.push_back(point);
      if (metrics_) metrics_->write(to_json(point));
    }
    if (store_ && due(options_.checkpoint_every)) save_checkpoint();
  }
  progress_->finish();
  if (stopped != 0) {
    if (store_) save_checkpoint();
    if (!options_.quiet) {
      print_message(fmt::format("stopped by signal {} after step {}{}", stopped, step_,
                                store_ ? "; a checkpoint was written" : ""));
    }
    return 128 + stopped;
  }
  require_finite_weights();
  if (!evaluated_) evaluate_now();
  if ((stopped = StopSignal::received()) != 0) return 128 + stopped;
  finish();
  return 0;
}

void Run::finish() {
  RunRecord record;
  record.command = options_.command;
  record.build = build_info();
  record.model = options_.model;
  record.data = options_.data;
  record.strategy = options_.strategy;
  const nlohmann::json in_force = settings(options_);
  for (const auto& [key, value] : in_force.items()) {
    if (key != "model" && key != "data" && key != "seed") record.options[key] = value;
  }
  record.options["threads"] = device_.state()->backend->executor().width();
  record.seed = options_.seed;
  record.workers = 1;
  record.devices = {device_.name()};
  record.steps = step_;
  record.examples = examples_;
  const double wall = earlier_s_ + trained_s_ + saved_s_;
  record.wall_s = wall;
  record.examples_per_s = wall > 0 ? static_cast<double>(examples_) / wall : kAbsent;
  record.metrics.train_loss = final_train_loss(history_, step_);
  record.metrics.test_loss = last_.loss;
  record.metrics.test_accuracy = last_.accuracy;
  record.metrics.parameters = nn::parameter_count(*model_);
  record.history = history_;
  record.flops_total = flops_;
  record.flops_sequential = std::llround(flops_sequential_);
  record.bytes_sent = 0;
  const double input_s = std::min(seconds(loader_->waited()), trained_s_);
  record.per_worker = {{.rank = 0,
                        .device = device_.name(),
                        .compute_s = earlier_s_ + trained_s_ - input_s,
                        .comm_s = 0,
                        .overlapped_s = 0,
                        .exposed_s = 0,
                        .input_s = input_s,
                        .idle_s = saved_s_,
                        .peak_bytes = peak_bytes_}};
  std::sort(step_s_.begin(), step_s_.end());
  if (!step_s_.empty()) record.measured.step_s = step_s_[step_s_.size() / 2];
  record.measured.peak_bytes = peak_bytes_;

  if (!options_.json.empty()) write_file(options_.json, record.to_text());
  if (trace_) {
    TraceSnapshot snapshot = trace_->snapshot();
    if (!options_.trace.empty()) write_file(options_.trace, to_chrome_json(snapshot));
    if (!options_.report.empty()) {
      RunReport report{.record = record, .ops = op_times(snapshot, "op"), .trace = std::move(snapshot), .title = ""};
      write_file(options_.report, render_report({&report, 1}));
    }
  }
  if (options_.quiet || first_step_ == total_steps_) return;
  Table table({"model", "parameters", "train loss", "test loss", "test accuracy", "examples/s", "peak memory", "FLOPs",
               "wall"});
  table.add({options_.model, human_count(static_cast<double>(nn::parameter_count(*model_))),
             human_number(record.metrics.train_loss), human_number(last_.loss),
             fmt::format("{:.2f} %", 100 * last_.accuracy), human_count(record.examples_per_s),
             human_bytes(static_cast<double>(peak_bytes_)), human_flops(static_cast<double>(flops_)),
             human_seconds(wall)});
  fmt::print("{}", table.to_text());
}

}  // namespace

RunRecord::Build build_info() {
  RunRecord::Build build;
  build.version = kVersion;
  build.git = kGitRevision;
  const Isa limit = isa_limit();
  std::vector<Isa> usable = usable_isas(CpuFeatures::read());
  std::erase_if(usable, [&](Isa isa) { return isa > limit; });
  build.isa = std::string(name_of(usable.front()));
  return build;
}

std::string version_line() {
  return fmt::format("lamina {}{}", kVersion, *kGitRevision == 0 ? "" : fmt::format(" ({})", kGitRevision));
}

int train(RunOptions options) {
  std::optional<nn::CheckpointStore::Loaded> from;
  if (options.resume && !options.checkpoint.empty()) {
    from = newest_checkpoint(options, "--resume");
    take_settings(options, *from, true);
  }
  check(options);
  return Run(options, std::move(from)).execute();
}

int eval(RunOptions options) {
  if (options.checkpoint.empty()) fail<ValueError>("eval", "needs --checkpoint DIR");
  const nn::CheckpointStore::Loaded loaded = newest_checkpoint(options, "eval");
  take_settings(options, loaded, false);
  options.augment = false;  // the checkpoint's, of training
  check(options);
  const auto data = open_split(options, Split::test);
  require_memory(options, *data, false);
  const Device device = open_device(options);
  const auto model = open_model(options, *data, device);
  nn::restore_state(loaded.tensors, *model, nullptr);
  const Evaluation e =
      evaluate(*model, *data, device, dtype_from_name(options.dtype), std::max<std::int64_t>(options.batch, 100));
  if (!options.json.empty()) {
    RunRecord record;
    record.command = options.command;
    record.build = build_info();
    record.model = options.model;
    record.data = options.data;
    record.seed = options.seed;
    record.devices = {device.name()};
    record.steps = loaded.step;
    record.metrics.test_loss = e.loss;
    record.metrics.test_accuracy = e.accuracy;
    write_file(options.json, record.to_text());
  }
  if (!std::isfinite(e.loss)) fail<Error>("eval", "the loss of the checkpoint of step {} is {}", loaded.step, e.loss);
  if (!options.quiet) {
    Table table({"model", "data", "step", "test loss", "test accuracy", "labels"});
    table.add({options.model, options.data, std::to_string(loaded.step), fmt::format("{:.6f}", e.loss),
               fmt::format("{:.2f} %", 100 * e.accuracy), std::to_string(e.labels)});
    fmt::print("{}", table.to_text());
  }
  return 0;
}

}  // namespace lamina::tools
