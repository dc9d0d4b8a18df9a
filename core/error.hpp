// The error hierarchy and its one message grammar:
//
//   <where>: <what is wrong, with the values> [<file>:<line>]
//   matmul: operand 1: inner dimension 64 does not match 65; shapes (8,64) x (65,32) [model.cpp:41]
//
// <where> is an op, a format or a part; the source location is that of the caller's op call and may be absent.
// Everything the engine throws derives from lamina::Error; nothing aborts, exits or prints.
#pragma once

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace lamina {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

#define LAMINA_DEFINE_ERROR(Name)   \
  class Name final : public Error { \
   public:                          \
    using Error::Error;             \
  }
LAMINA_DEFINE_ERROR(ShapeError);     ///< shapes that do not fit an op, or overflow
LAMINA_DEFINE_ERROR(DTypeError);     ///< element types that do not fit an op or an access
LAMINA_DEFINE_ERROR(LayoutError);    ///< strides that cannot express a view or are not what an access needs
LAMINA_DEFINE_ERROR(DeviceError);    ///< mixed devices, host access to device memory, a failed device call
LAMINA_DEFINE_ERROR(AliasError);     ///< writing storage that somebody else holds
LAMINA_DEFINE_ERROR(OutOfMemory);    ///< a device's memory is exhausted; the engine stays usable
LAMINA_DEFINE_ERROR(MissingKernel);  ///< no kernel of the op on the device supports the problem
LAMINA_DEFINE_ERROR(IndexError);     ///< a label or id outside its range
LAMINA_DEFINE_ERROR(ValueError);     ///< an argument or option outside what is allowed
LAMINA_DEFINE_ERROR(FormatError);    ///< a file whose contents are not what its format says
LAMINA_DEFINE_ERROR(IoError);        ///< a file that cannot be read or written
LAMINA_DEFINE_ERROR(TapeError);      ///< misuse of a tape, var or pass
LAMINA_DEFINE_ERROR(PeerLost);       ///< a rank died
LAMINA_DEFINE_ERROR(Timeout);        ///< a deadline passed
LAMINA_DEFINE_ERROR(Mismatch);       ///< ranks disagree on what they are doing
#undef LAMINA_DEFINE_ERROR

using SourceLocation = std::source_location;

/// While it lives, errors thrown on this thread carry the source location given: an op sets its caller's.
/// An outer call site wins, so that an op used inside another op's gradient reports the user's line.
class CallSite {
 public:
  explicit CallSite(const SourceLocation& location) noexcept : outer_(current) {
    if (outer_ == nullptr && location.line() != 0) current = &location;
  }
  ~CallSite() { current = outer_; }
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

 private:
  friend std::string error_message(std::string_view, std::string_view);
  static thread_local constinit const SourceLocation* current;
  const SourceLocation* outer_;
};

/// Composes a message in the grammar above, with the current call site's location if there is one.
std::string error_message(std::string_view where, std::string_view detail);

/// Throws E with a message in the one grammar. `args` are formatted by fmt.
template <class E, class... Args>
[[noreturn]] void fail(std::string_view where, fmt::format_string<Args...> format, Args&&... args) {
  throw E(error_message(where, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace lamina
