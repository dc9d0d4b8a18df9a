// Interrupt and terminate, noticed between steps. Only the program installs handlers; the libraries never do.
#pragma once

namespace lamina::tools {

/// While it lives SIGINT and SIGTERM are noted instead of ending the process; a second one ends it at once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// The signal received, or 0.
  static int received() noexcept;
};

}  // namespace lamina::tools
