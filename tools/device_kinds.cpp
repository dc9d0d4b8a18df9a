#include "lamina/tools/device_kinds.hpp"

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/example/device.hpp"

namespace lamina::tools {

std::span<const DeviceKind> device_kinds() {
  static constexpr DeviceKind kinds[] = {
      {"cpu", "", [](int threads) { return cpu_device({.threads = threads}); }},
      {"example", "the slow reference device", [](int) { return example_device(); }},
  };
  return kinds;
}

std::string device_names() {
  std::string names;
  for (const DeviceKind& kind : device_kinds()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
    if (!kind.about.empty()) names += fmt::format(" ({})", kind.about);
  }
  return names;
}

Device open_device(std::string_view name, int threads) {
  for (const DeviceKind& kind : device_kinds()) {
    if (kind.name == name) return kind.open(threads);
  }
  fail<ValueError>("--devices", "unknown device '{}'; known: {}", name, device_names());
}

}  // namespace lamina::tools
