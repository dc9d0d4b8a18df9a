// Residual networks (He et al. 2016).
#pragma once

#include "lamina/nn/layers.hpp"

namespace lamina::models {

/// The CIFAR form: 3x3 stem of `width` channels, three groups of (depth - 2) / 6 basic blocks with width, 2 width and
/// 4 width channels (the second and third group halve the image), global average, linear. Shortcuts that change shape
/// are 1x1 convolutions of stride 2 with batch norm. Depths 8, 20, 32, 44, 56, ...; images of any size >= 1.
struct CifarResNetOptions {
  std::int64_t depth = 20;
  std::int64_t channels = 3;
  std::int64_t outputs = 10;
  std::int64_t width = 16;
};

/// The ImageNet form: 7x7 stride 2 stem, 3x3 max pool, four groups, global average, linear. Depths 18 and 34 have basic
/// blocks, 50 bottlenecks with the stride in the 3x3 convolution ("v1.5"). The last norm of each block starts at gain 0
/// when `zero_init` is set (Goyal et al. 2017).
struct ImageNetResNetOptions {
  std::int64_t depth = 50;
  std::int64_t channels = 3;
  std::int64_t outputs = 1000;
  bool zero_init = true;
};

/// (N, channels, H, W) -> (N, outputs). Blocks: stem, residual blocks, head. Throws ValueError for an unknown depth.
std::unique_ptr<nn::Sequential> make_resnet(nn::Builder& builder, const CifarResNetOptions& options);
std::unique_ptr<nn::Sequential> make_resnet(nn::Builder& builder, const ImageNetResNetOptions& options);

}  // namespace lamina::models
