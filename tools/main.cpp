// The `lamina` program: one line for every error, exit code 2 for usage and 1 for the rest.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lamina/core/error.hpp"
#include "lamina/tools/device_kinds.hpp"
#include "lamina/tools/help.hpp"
#include "lamina/tools/info.hpp"
#include "lamina/tools/launch.hpp"
#include "lamina/tools/message.hpp"
#include "lamina/tools/ops.hpp"
#include "lamina/tools/report_command.hpp"
#include "lamina/tools/train.hpp"

namespace {

using namespace lamina;
using tools::RunOptions;

// A closed standard descriptor would be given to the next file opened, and messages would go into it.
void open_standard_descriptors() {
  for (int fd = 0; fd < 3; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) (void)!::open("/dev/null", O_RDWR);
  }
}

std::string whole_number(std::string& text) {
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  errno = 0;
  if (digits) (void)std::strtoull(text.c_str(), nullptr, 10);
  return digits && errno == 0 ? std::string() : "'" + text + "' is not a whole number from 0 to 2^64 - 1";
}

// CLI11 takes an empty text for 0 or for a flag that is not there: an unset variable in a script.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) fail<ValueError>(option->get_name(), "needs a value; it is empty");
    }
  }
}

// Of both subcommands.
void add_common_flags(CLI::App& app, RunOptions& o) {
  app.add_option("--data-dir", o.data_dir,
                 "Folder of fashion-mnist or cifar10; else $LAMINA_DATA, then where Debian puts it");
  app.add_option("--devices", o.devices, tools::device_names())->capture_default_str();
  app.add_option("--threads", o.threads, "CPU threads; 0: all. Results do not depend on it")->capture_default_str();
  app.add_option("--json", o.json, "Write the run's record to FILE");
  app.add_flag("--quiet", o.quiet, "Print nothing but errors");
}

// Model, dtype and the rest are the checkpoint's.
void add_eval_flags(CLI::App& app, RunOptions& o) {
  app.add_option("--checkpoint", o.checkpoint, "Folder of the checkpoints; the newest whole one is evaluated");
  app.add_option("--data", o.data, "Data set; the one the checkpoint was trained on when not given");
  app.add_option("--batch", o.batch, "Examples at a time; the checkpoint's when not given, 100 or more");
  add_common_flags(app, o);
}

void add_train_flags(CLI::App& app, RunOptions& o) {
  app.add_option("--model", o.model, "NAME[:key=value,...]; names and options below")->capture_default_str();
  app.add_option("--data", o.data, "NAME[:...]; names and options below")->capture_default_str();
  app.add_option("--batch", o.batch, "Examples a step")->capture_default_str();
  app.add_option("--context", o.context, "Tokens of an example, for text")->capture_default_str();
  app.add_option("--dtype", o.dtype, "f32, f64")->capture_default_str();
  app.add_option("--seed", o.seed, "Keys initial values, data order and dropout")
      ->capture_default_str()
      ->check(CLI::Validator(whole_number, ""));
  app.add_option("--checkpoint", o.checkpoint, "Folder of the checkpoints");
  add_common_flags(app, o);
  app.add_option("--strategy", o.strategy, "backprop")->capture_default_str();
  app.add_option("--workers", o.workers, "1")->capture_default_str();
  app.add_option("--epochs", o.epochs, "Passes over the training data")->capture_default_str();
  app.add_option("--steps", o.steps, "Optimiser steps, instead of epochs");
  app.add_option("--lr", o.lr, "Learning rate")->capture_default_str();
  app.add_option("--lr-schedule", o.lr_schedule, "NAME[:key=value,...]; names and options below")
      ->capture_default_str();
  app.add_option("--optimizer", o.optimizer.name, "sgd, adam, adamw")->capture_default_str();
  app.add_option("--momentum", o.optimizer.momentum, "Of sgd")->capture_default_str();
  app.add_flag("--nesterov", o.optimizer.nesterov, "Nesterov's momentum, for sgd");
  app.add_option("--weight-decay", o.optimizer.weight_decay, "Of weights; biases and norms do not decay")
      ->capture_default_str();
  app.add_option("--clip", o.optimizer.clip, "Largest global gradient norm; 0: none")->capture_default_str();
  app.add_option("--label-smoothing", o.label_smoothing, "In [0, 1)")->capture_default_str();
  app.add_flag("--augment", o.augment, "Random crops and flips of training images");
  app.add_option("--eval-every", o.eval_every, "Steps between evaluations; 0: each epoch")->capture_default_str();
  app.add_option("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints; 0: each epoch")
      ->capture_default_str();
  app.add_option("--keep", o.keep, "Checkpoints kept")->capture_default_str();
  app.add_flag("--resume", o.resume,
               "Go on from the newest checkpoint, with its settings; --epochs or --steps make the run longer");
  app.add_option("--trace", o.trace, "Write a Chrome trace of every step to FILE (opens in Perfetto)");
  app.add_option("--trace-steps", o.trace_steps, "Trace this many steps, past the first few; 0: every step")
      ->capture_default_str();
  app.add_option("--report", o.report, "Write a self-contained HTML report to FILE");
  app.add_option("--metrics", o.metrics, "Write history points to FILE as JSON lines");
  app.footer(tools::named_options_help());
}

void add_launch_flags(CLI::App& app, tools::LaunchOptions& o) {
  app.footer(
      "Ranks find LAMINA_RANK, LAMINA_SIZE, LAMINA_LOCAL_RANK, LAMINA_LOCAL_SIZE, LAMINA_MEETING and LAMINA_JOB in "
      "their\n"
      "environment. Output is theirs as it comes; standard input is rank 0's, unless it is a terminal.\n"
      "The first rank that fails stops the others, its exit code is passed on; INT, TERM and HUP are, too.");
  app.add_option("-n,--ranks", o.ranks, "Processes to start on this host")->required();
  app.add_option("--host", o.host, "Numeric address where rank 0 listens, at a free port")->capture_default_str();
  app.add_option("--env", o.env, "NAME=VALUE for all ranks; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  app.add_flag("--prefix", o.prefix, "Begin each line of output with its rank: '[2] '");
  app.add_option("--grace", o.grace, "Seconds that ranks have to end when they are told to, before they are killed")
      ->capture_default_str();
}

/// Where in the arguments the program of `launch` begins, which CLI11 must not read: after a `--`, or at the first that
/// is neither a flag nor a flag's value.
int program_begin(const CLI::App& launch, int argc, char** argv) {
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--" || !word.starts_with("-")) return i;
    const CLI::Option* option = launch.get_option_no_throw(word);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
  }
  return argc;
}

int run(int argc, char** argv) {
  CLI::App app("lamina: a laboratory for parallel training");
  app.require_subcommand(1);
  app.set_version_flag(
      "--version", [] { return tools::version_line(); }, "Print the version and exit");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  RunOptions options;
  for (int i = 0; i < argc; ++i) options.command += std::string(i == 0 ? "" : " ") + argv[i];

  CLI::App* train = app.add_subcommand("train", "Train a model");
  add_train_flags(*train, options);
  CLI::App* eval = app.add_subcommand("eval", "Evaluate the newest checkpoint on the test split");
  add_eval_flags(*eval, options);
  tools::ReportOptions report_options;
  CLI::App* report = app.add_subcommand("report", "Draw one report of several runs");
  report->add_option("runs", report_options.runs, "Files written by --json")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  report->add_option("--trace", report_options.traces, "Their --trace files, in the same order")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  report->add_option("--out", report_options.out, "The HTML file")->capture_default_str();
  tools::LaunchOptions launch_options;
  CLI::App* launch =
      app.add_subcommand("launch", "Run a program as the ranks of a world: launch -n N [--] PROGRAM ARGS...");
  add_launch_flags(*launch, launch_options);
  CLI::App* info = app.add_subcommand("info", "The machine: instruction sets, measured peak and bandwidth");
  CLI::App* ops = app.add_subcommand("ops", "The support table: ops, devices, variants, dtypes, cost");
  std::string op_name;
  ops->add_option("op", op_name, "Only this op, with its variants");

  int parsed = argc;
  if (argc > 1 && std::strcmp(argv[1], "launch") == 0) {
    parsed = program_begin(*launch, argc, argv);
    const int program = parsed < argc && std::strcmp(argv[parsed], "--") == 0 ? parsed + 1 : parsed;
    launch_options.program.assign(argv + program, argv + argc);
  }
  try {
    app.parse(parsed, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    const bool none = dynamic_cast<const CLI::RequiredError*>(&e) != nullptr && app.get_subcommands().empty();
    constexpr std::string_view known = "known subcommands: train, eval, report, launch, info, ops";
    tools::print_message(!none      ? e.what()
                         : argc < 2 ? fmt::format("a subcommand is needed; {}", known)
                                    : fmt::format("'{}' is not a subcommand; {}", argv[1], known));
    return 2;
  }
  for (const CLI::App* command : app.get_subcommands()) {
    refuse_empty_values(*command);
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() > 0 && !option->get_lnames().empty()) options.given.insert(option->get_lnames().front());
    }
  }
  if (*train) return tools::train(options);
  if (*eval) return tools::eval(options);
  if (*report) return tools::report(report_options);
  if (*launch) return tools::launch(launch_options);
  if (*info) return tools::info();
  return tools::ops(op_name);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  // A pipe without a reader and a limit on file sizes are errors of the write, not the end of the run.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  int status = 1;
  try {
    status = run(argc, argv);
  } catch (const lamina::ValueError& e) {
    tools::print_message(e.what());
    status = 2;
  } catch (const std::bad_alloc&) {
    tools::print_message("out of memory");
  } catch (const std::exception& e) {
    tools::print_message(e.what());
  }
  errno = 0;
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && errno != EPIPE && status == 0) {
    tools::print_message(std::string("standard output: ") + (errno != 0 ? std::strerror(errno) : "a write failed"));
    status = 1;
  }
  return status;
}
