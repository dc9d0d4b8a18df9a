// The flags of `lamina train` and `lamina eval`, what they name, and what of them a checkpoint and a record keep.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "lamina/core/device.hpp"
#include "lamina/models/data/open.hpp"
#include "lamina/models/registry.hpp"
#include "lamina/nn/optimizer.hpp"
#include "lamina/nn/schedule.hpp"

namespace lamina::tools {

struct RunOptions {
  std::string model = "mlp";
  std::string data = "fashion-mnist";
  std::string data_dir;
  std::string strategy = "backprop";
  std::int64_t workers = 1;
  std::string devices = "cpu";
  std::int64_t threads = 0;
  std::int64_t batch = 64;
  std::int64_t epochs = 1;
  std::int64_t steps = 0;  ///< 0: by epochs
  double lr = 0.05;
  std::string lr_schedule = "constant";
  nn::OptimizerOptions optimizer;
  double label_smoothing = 0;
  std::int64_t context = 128;
  bool augment = false;
  std::string dtype = "f32";
  std::uint64_t seed = 0;
  std::int64_t eval_every = 0;  ///< steps; 0: at the end of each epoch
  std::string checkpoint;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: at the end of each epoch
  std::int64_t keep = 2;
  bool resume = false;
  std::string json, trace, report, metrics;
  std::int64_t trace_steps = 0;  ///< 0: every step
  bool quiet = false;
  std::string command;                         ///< the whole command line, for the record
  std::set<std::string, std::less<>> given{};  ///< names of the flags on it, without the dashes
};

/// Throws ValueError for a combination that makes no sense, one in which a flag that was given has no effect included,
/// saying what would have been right.
void check(const RunOptions& options);

/// The device that `--devices` names. Throws ValueError naming the known ones.
Device open_device(const RunOptions& options);
std::shared_ptr<const Dataset> open_split(const RunOptions& options, Split split);
models::ModelInput model_input(const Dataset& dataset);
std::unique_ptr<nn::Sequential> open_model(const RunOptions& options, const Dataset& dataset, const Device& device);

/// The values in force by the names of their flags: `momentum` with sgd only, `epochs` or `steps`, never both. What a
/// run's record and its checkpoints keep.
nlohmann::json settings(const RunOptions& options);

/// Takes over from a checkpoint's settings what was not given on the command line. With `same_run` a flag that was
/// given and would change the run throws ValueError with both values (its length and how often it saves may change);
/// else what was given wins. Throws FormatError or a json exception for settings that are damaged.
void restore_settings(RunOptions& options, const nlohmann::json& saved, bool same_run);

}  // namespace lamina::tools
