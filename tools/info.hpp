// `lamina info` and `lamina ops`.
#pragma once

#include <string>

namespace lamina::tools {

/// Prints the machine, the instruction sets and what they measure here. Takes about a second.
int info();

/// Prints the support table; with a name, that op's variants and costs. Throws ValueError for an unknown op.
int ops(const std::string& name);

}  // namespace lamina::tools
