// A device without memory: ops on its tensors infer shapes, count their cost and compute nothing. Recording a model on
// it gives shapes, FLOPs and bytes of any size of model in microseconds.
#pragma once

#include "lamina/core/device.hpp"

namespace lamina {

Device shape_device();

}  // namespace lamina
