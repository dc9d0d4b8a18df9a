// Image sets held in memory as bytes and turned to floats when read: IDX pairs (the MNIST family) and CIFAR-10's
// binary files. Everything about the files is checked when a set is opened: sizes, counts, label range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lamina/models/data/dataset.hpp"

namespace lamina {

/// A pixel p of 0..255 becomes (p / 255 - mean) / std. One value for all channels, or one each.
struct Normalization {
  std::vector<float> mean{0.0f};
  std::vector<float> std{1.0f};

  /// What a black pixel becomes in channel `c`.
  float black(std::size_t c) const { return -mean[c % mean.size()] / std[c % std.size()]; }
};

/// The usual ones: of the training pixels of each set.
Normalization fashion_mnist_normalization();
Normalization cifar10_normalization();

/// N images of (C,H,W) bytes with a label each. Inputs are f32 (C,H,W), labels i64 ().
class ImageSet final : public Dataset {
 public:
  struct Source {
    std::string name;
    std::vector<std::byte> bytes;  ///< of the files
    std::size_t first = 0;         ///< where the pixels of image 0 begin
    std::size_t stride = 0;        ///< bytes from one image to the next
    Shape image;                   ///< (C,H,W)
    std::vector<std::uint8_t> labels;
    std::int64_t classes = 0;
  };
  /// Throws FormatError for a label outside [0, classes) or bytes that do not hold the images; ValueError for a
  /// normalization that does not fit the channels or whose std is not positive.
  ImageSet(Source source, const Normalization& normalization);

  void read_example(const Example& example, std::span<std::byte> input, std::span<std::byte> label) const override;

 private:
  std::vector<std::byte> bytes_;
  std::size_t first_;
  std::size_t stride_;
  std::vector<std::uint8_t> labels_;
  std::vector<float> values_;  // (C,256): the float of each byte
};

/// `{train,t10k}-{images-idx3,labels-idx1}-ubyte` of a folder, plain or with .gz, or with a dot for the dash before
/// idx. Images are (N,H,W), or (N,C,H,W). Throws IoError naming what was looked for, FormatError, DTypeError.
std::shared_ptr<const Dataset> open_idx_images(const std::filesystem::path& folder, Split split, std::int64_t classes,
                                               const Normalization& normalization, std::string name = "idx");

/// `data_batch_{1..5}.bin` or `test_batch.bin` of a folder: records of a label and 3072 bytes. Throws IoError,
/// FormatError.
std::shared_ptr<const Dataset> open_cifar10(const std::filesystem::path& folder, Split split,
                                            const Normalization& normalization);

}  // namespace lamina
