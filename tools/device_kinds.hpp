// The kinds of device the program can run on: what --devices takes and `lamina ops` lists.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lamina/core/device.hpp"

namespace lamina::tools {

struct DeviceKind {
  std::string_view name;   ///< as Device::kind(), and in --devices
  std::string_view about;  ///< for the help; may be empty
  Device (*open)(int threads);
};

/// In the order they are listed in. A further kind is one more line.
std::span<const DeviceKind> device_kinds();

/// "cpu, example (the slow reference device)"
std::string device_names();

/// Throws ValueError naming the kinds.
Device open_device(std::string_view name, int threads);

}  // namespace lamina::tools
