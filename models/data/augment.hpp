// Augmentation: a data set whose images are those of another, cropped at random from a padded frame and mirrored.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lamina/models/data/dataset.hpp"

namespace lamina {

struct CropFlip {
  int padding = 4;   ///< pixels added on each of the four sides before the crop; 0 = no crop
  bool flip = true;  ///< mirror left and right, every second time
  std::uint64_t seed = 0;
};

/// A set of the same size and shapes. Offsets and mirroring are drawn from (seed, example id), so that an example looks
/// different in every epoch and the same in every split of the work. `fill` is what the padding holds: one value, or
/// one a channel; empty = 0. Throws ShapeError unless inputs are f32 (C,H,W), ValueError for a negative padding or a
/// fill that does not fit the channels.
std::shared_ptr<const Dataset> crop_flip(std::shared_ptr<const Dataset> images, const CropFlip& options,
                                         std::vector<float> fill = {});

}  // namespace lamina
