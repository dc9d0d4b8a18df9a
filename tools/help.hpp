// What the help texts say of models, data sets and schedules: made from the code that reads their options.
#pragma once

#include <string>

namespace lamina::tools {

/// Lines for the end of `lamina train --help`: every model's options, the data sets, the schedules, with defaults.
std::string named_options_help();

}  // namespace lamina::tools
