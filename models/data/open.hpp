// open_dataset: a data set from its name, as the command line gives it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lamina/models/data/augment.hpp"
#include "lamina/models/data/dataset.hpp"

namespace lamina {

struct DatasetOptions {
  Split split = Split::train;
  std::filesystem::path folder{};    ///< of fashion-mnist and cifar10; empty = where find_data_folder looks
  bool standardize = true;           ///< by the set's own mean and deviation; false = pixels in [0, 1]
  std::int64_t classes = 10;         ///< of idx:
  std::int64_t context = 128;        ///< of text: tokens of one example
  double validation_fraction = 0.1;  ///< of text:
  std::uint64_t seed = 0;            ///< of text windows and augmentation
  std::optional<CropFlip>
      augment{};  ///< of images, training split only; the seed above replaces its own, the frame is black
};

/// Opens
///   fashion-mnist
///   cifar10[:FOLDER]       the binary version
///   idx:FOLDER             {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz]; pixels in [0, 1]
///   text:FILE              bytes as tokens
///   synthetic[:shape=...]  defaults as known_datasets() has them; test = examples / 8
/// Throws ValueError for any other name, key or value, saying what is allowed, and for a folder that the set does not
/// look into; IoError and FormatError for the files.
/// Reads the environment variable LAMINA_DATA. Thread-safe but for setenv.
std::shared_ptr<const Dataset> open_dataset(std::string_view spec, const DatasetOptions& options = {});

/// What open_dataset opens, "fashion-mnist, ..., synthetic[:shape=3x32x32,...]" with defaults: for messages and help.
std::string known_datasets();

/// The folder that has `file`: the explicit folder if one is given (nothing else is tried then), else of
/// $LAMINA_DATA/NAME, $LAMINA_DATA and /usr/share/datasets/NAME the first. Throws IoError listing the places tried,
/// ValueError when LAMINA_DATA is needed and names no folder.
std::filesystem::path find_data_folder(std::string_view name, std::string_view file,
                                       const std::filesystem::path& explicit_folder = {});

}  // namespace lamina
