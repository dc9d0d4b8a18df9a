// The sections of the page from top to bottom, each in the file of its name. A section without anything to show is
// empty, but for the curves, which every run should have. Pure functions; thread-safe.
#pragma once

#include <string>

#include "lamina/tools/report/names.hpp"

namespace lamina::tools {

/// Cards with the few numbers that say how a run went.
std::string headlines_section(Runs runs, const Names& names);
/// Loss, accuracy and learning rate over the run.
std::string curves_section(Runs runs, const Names& names);
/// Where the time goes: by worker, by op, and as predicted.
std::string time_section(Runs runs, const Names& names);
/// A few steps of the trace.
std::string timeline_section(Runs runs, const Names& names);
/// Options, versions and commands.
std::string configuration_section(Runs runs, const Names& names);

}  // namespace lamina::tools
