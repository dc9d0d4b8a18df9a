// `lamina ops`: the support table.
#pragma once

#include <string>

namespace lamina::tools {

/// Prints every op with the dtypes it has on each kind of device, its variants and the cost of its first sample; with a
/// name, that op's variants on every kind of device. Throws ValueError for an unknown op.
int ops(const std::string& name);

}  // namespace lamina::tools
