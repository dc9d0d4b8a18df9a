// `lamina info`.
#pragma once

namespace lamina::tools {

/// Prints the machine, the instruction sets and what they measure here. Takes about a second.
int info();

}  // namespace lamina::tools
