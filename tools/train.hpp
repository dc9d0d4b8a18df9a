// `lamina train`: one run from flags to files.
#pragma once

#include "lamina/tools/run_options.hpp"
#include "lamina/tools/run_record.hpp"

namespace lamina::tools {

/// Trains, writes what the flags ask for, prints a final table unless quiet. Returns the exit code: 0, or 128 + the
/// signal that ended it (the step was finished and a checkpoint written). Throws lamina::Error.
int train(RunOptions options);

/// `lamina eval`: loads the newest checkpoint of --checkpoint and evaluates it on the test split.
int eval(RunOptions options);

/// "lamina 0.1.0 (1a2b3c4)".
std::string version_line();

/// The part of a record that describes this build and machine. Throws ValueError for an unknown LAMINA_ISA.
RunRecord::Build build_info();

}  // namespace lamina::tools
