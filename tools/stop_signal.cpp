#include "lamina/tools/stop_signal.hpp"

#include <signal.h>

#include <cstddef>

namespace lamina::tools {

namespace {

volatile sig_atomic_t received_signal = 0;
struct sigaction before[2];
constexpr int kSignals[] = {SIGINT, SIGTERM};

}  // namespace

StopSignal::StopSignal() {
  received_signal = 0;
  struct sigaction action = {};
  action.sa_handler = [](int signal) { received_signal = signal; };
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (std::size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &action, &before[i]);
}

StopSignal::~StopSignal() {
  for (std::size_t i = 0; i < 2; ++i) sigaction(kSignals[i], &before[i], nullptr);
}

int StopSignal::received() noexcept { return received_signal; }

}  // namespace lamina::tools
