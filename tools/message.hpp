// What the program says on standard error: one line each, `lamina: <text>`.
#pragma once

#include <string_view>

namespace lamina::tools {

/// Control characters are written as \xNN and a very long text is cut, so that it stays one line whatever a name in it
/// holds. A standard error that is closed or broken is not an error.
void print_message(std::string_view text) noexcept;

}  // namespace lamina::tools
