// RunRecord: what one run was and what came of it: the object that `--json FILE` writes, and its schema.
// Values; thread-safe as such.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lamina::tools {

/// A number that does not apply or is not known. Like every value that is not finite it becomes null in JSON.
inline constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

/// The compiler this file is compiled with, such as "GCC 12.2.0".
std::string compiler_name();

/// Keys that do not apply are null in JSON, never absent: empty strings, empty optionals, numbers that are not finite.
/// Seconds are wall-clock seconds, bytes are bytes, FLOPs count a fused multiply-add as two.
///
///   schema            text     "lamina-run/1"; changes when a key changes its meaning or goes
///   command           text     the command line
///   build             object   version, git (commit, "+" when changed), compiler, isa ("avx2", ...)
///   model data strategy  text  as given, options included
///   options           object   every other flag that was in force, by its name: no `epochs` beside `steps`, no
///                              `momentum` without sgd; threads as they were
///   seed workers      integer
///   devices           [text]   one a worker
///   steps examples    integer  optimiser steps done; training examples seen, repeats counted
///   wall_s            s        training, evaluation excluded
///   examples_per_s    1/s      examples / wall_s
///   metrics           object   at the end: train_loss (over the history points of the last twentieth of the steps),
///                              test_loss (means per example or token, nats), test_accuracy (0 to 1), parameters
///                              (integer), then what the task adds
///   history           [object] step, examples, wall_s, train_loss, test_loss, test_accuracy, lr; in order of steps,
///                              one every (steps / 400)th step, at least 1, and one at every evaluation. train_loss
///                              is the mean over the steps since the point before, each step's loss taken before its
///                              update, with label smoothing and dropout; lr is the rate of the point's step
///   flops_total       FLOP     exact, by the op records' costs, over all workers
///   flops_sequential  FLOP     along the longest chain of dependent work, with the examples of a batch and the parts a
///                              strategy trains apart in parallel (McCandlish et al. 2018). Backprop: of every step,
///                              forward and backward of one example, and the update
///   bytes_sent        bytes    by all ranks, payload only
///   per_worker        [object] rank, device, then compute_s + exposed_s + input_s + idle_s = wall_s; comm_s =
///                              overlapped_s + exposed_s; peak_bytes: the allocator's live peak
///   predicted         object   step_s (s a step), peak_bytes (largest worker's), from the simulator
///   measured          object   the same, measured; step_s is the median
struct RunRecord {
  static constexpr std::string_view kSchema = "lamina-run/1";

  struct Build {
    std::string version = {};
    std::string git = {};
    std::string compiler = compiler_name();
    std::string isa = {};
  };
  struct Metrics {
    double train_loss = kAbsent;
    double test_loss = kAbsent;
    double test_accuracy = kAbsent;
    std::optional<std::int64_t> parameters = {};
    std::vector<std::pair<std::string, double>> more = {};
  };
  struct Point {
    std::int64_t step = 0;
    std::int64_t examples = 0;
    double wall_s = kAbsent;
    double train_loss = kAbsent;
    double test_loss = kAbsent;
    double test_accuracy = kAbsent;
    double lr = kAbsent;
  };
  struct Worker {
    int rank = 0;
    std::string device = {};
    double compute_s = kAbsent;
    double comm_s = kAbsent;
    double overlapped_s = kAbsent;
    double exposed_s = kAbsent;
    double input_s = kAbsent;
    double idle_s = kAbsent;
    std::optional<std::int64_t> peak_bytes = {};
  };
  struct Cost {
    double step_s = kAbsent;
    std::optional<std::int64_t> peak_bytes = {};
  };

  std::string command = {};
  Build build = {};
  std::string model = {};
  std::string data = {};
  std::string strategy = {};
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  std::optional<std::uint64_t> seed = {};
  std::optional<std::int64_t> workers = {};
  std::vector<std::string> devices = {};
  std::optional<std::int64_t> steps = {};
  std::optional<std::int64_t> examples = {};
  double wall_s = kAbsent;
  double examples_per_s = kAbsent;
  Metrics metrics = {};
  std::vector<Point> history = {};
  std::optional<std::int64_t> flops_total = {};
  std::optional<std::int64_t> flops_sequential = {};
  std::optional<std::int64_t> bytes_sent = {};
  std::vector<Worker> per_worker = {};
  Cost predicted = {};
  Cost measured = {};

  /// The object described above, keys in that order.
  nlohmann::ordered_json to_json() const;
  /// Its text, indented, ending in a newline; invalid UTF-8 is replaced.
  std::string to_text() const;
  /// Reads what to_json wrote; unknown and missing keys are ignored. Throws FormatError naming the key that is wrong.
  static RunRecord from_json(const nlohmann::ordered_json& json);
  /// The same from text. Throws FormatError.
  static RunRecord from_text(std::string_view text);
};

}  // namespace lamina::tools
