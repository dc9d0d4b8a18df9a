#include "lamina/models/data/image_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/core/io/idx.hpp"

namespace lamina {

Normalization fashion_mnist_normalization() { return {{0.2860f}, {0.3530f}}; }
Normalization cifar10_normalization() { return {{0.4914f, 0.4822f, 0.4465f}, {0.2470f, 0.2435f, 0.2616f}}; }

ImageSet::ImageSet(Source source, const Normalization& normalization)
    : Dataset({source.name,
               static_cast<std::int64_t>(source.labels.size()),
               {source.image, DType::f32},
               {Shape{}, DType::i64},
               source.classes}),
      bytes_(std::move(source.bytes)),
      first_(source.first),
      stride_(source.stride),
      labels_(std::move(source.labels)) {
  if (source.image.rank() != 3 || source.image.count() < 1) {
    fail<FormatError>("data", "{}: images of shape {}; (C,H,W) with pixels expected", name(), to_string(source.image));
  }
  const auto pixels = static_cast<std::size_t>(source.image.count());
  if (stride_ < pixels || first_ > bytes_.size() || (bytes_.size() - first_) / stride_ < labels_.size() - 1 ||
      bytes_.size() - first_ - (labels_.size() - 1) * stride_ < pixels) {
    fail<FormatError>("data", "{}: {} bytes do not hold {} images of {}", name(), bytes_.size(), size(),
                      to_string(source.image));
  }
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    if (labels_[i] >= classes()) {
      fail<FormatError>("data", "{}: label {} of example {} is outside [0, {})", name(), labels_[i], i, classes());
    }
  }
  const auto channels = static_cast<std::size_t>(source.image[0]);
  for (const std::vector<float>* values : {&normalization.mean, &normalization.std}) {
    if (values->size() != 1 && values->size() != channels) {
      fail<ValueError>("data", "{}: a normalization of {} values for {} channels", name(), values->size(), channels);
    }
  }
  for (std::size_t c = 0; c < channels; ++c) {
    const float mean = normalization.mean[c % normalization.mean.size()];
    const float deviation = normalization.std[c % normalization.std.size()];
    if (!std::isfinite(mean) || !(deviation > 0) || !std::isfinite(deviation)) {
      fail<ValueError>("data", "{}: cannot normalize by mean {} and std {}", name(), mean, deviation);
    }
    for (int byte = 0; byte < 256; ++byte) values_.push_back((static_cast<float>(byte) / 255.0f - mean) / deviation);
  }
}

void ImageSet::read_example(const Example& example, std::span<std::byte> in, std::span<std::byte> label) const {
  const auto i = static_cast<std::size_t>(example.index);
  elements<std::int64_t>(label)[0] = labels_[i];
  const std::span<float> out = elements<float>(in);
  const std::byte* from = bytes_.data() + first_ + i * stride_;
  const std::size_t plane = out.size() / (values_.size() / 256);
  const float* values = values_.data();
  for (std::size_t at = 0; at < out.size(); at += plane, values += 256) {
    for (std::size_t p = 0; p < plane; ++p) out[at + p] = values[std::to_integer<std::size_t>(from[at + p])];
  }
}

namespace {

// The first of the usual spellings of a file that exists; `kind` is "images" or "labels".
std::filesystem::path find_idx(const std::filesystem::path& folder, std::string_view set, std::string_view kind,
                               int rank) {
  std::vector<std::string> tried;
  for (const char dash : {'-', '.'}) {
    for (const std::string_view suffix : {"", ".gz"}) {
      tried.push_back(fmt::format("{}-{}{}idx{}-ubyte{}", set, kind, dash, rank, suffix));
      std::error_code error;
      if (std::filesystem::is_regular_file(folder / tried.back(), error)) return folder / tried.back();
    }
  }
  fail<IoError>("data", "the folder {} has none of {}", quote(folder.native()), fmt::join(tried, ", "));
}

}  // namespace

std::shared_ptr<const Dataset> open_idx_images(const std::filesystem::path& folder, Split split, std::int64_t classes,
                                               const Normalization& normalization, std::string name) {
  const std::string_view set = split == Split::train ? "train" : "t10k";
  const auto images_path = find_idx(folder, set, "images", 3);
  const auto labels_path = find_idx(folder, set, "labels", 1);
  IdxArray images = read_idx(images_path);
  const IdxArray labels = read_idx(labels_path);
  const Shape& shape = images.shape();
  if (shape.rank() != 3 && shape.rank() != 4) {
    fail<FormatError>("data", "{} holds {}; (N,H,W) or (N,C,H,W) expected", quote(images_path.native()),
                      to_string(shape));
  }
  if (labels.shape().rank() != 1) {
    fail<FormatError>("data", "{} holds {}; (N) expected", quote(labels_path.native()), to_string(labels.shape()));
  }
  if (shape[0] != labels.shape()[0]) {
    fail<FormatError>("data", "{} has {} images, {} has {} labels", quote(images_path.native()), shape[0],
                      quote(labels_path.native()), labels.shape()[0]);
  }
  ImageSet::Source source;
  source.name = std::move(name);
  source.first = images.header_bytes();
  source.image = shape.rank() == 4 ? shape.removed(0) : shape.with(0, 1);
  source.stride = static_cast<std::size_t>(source.image.count());
  source.labels.assign(labels.values().begin(), labels.values().end());
  source.classes = classes;
  source.bytes = std::move(images).release();
  return std::make_shared<ImageSet>(std::move(source), normalization);
}

std::shared_ptr<const Dataset> open_cifar10(const std::filesystem::path& folder, Split split,
                                            const Normalization& normalization) {
  constexpr std::size_t kRecord = 1 + 3 * 32 * 32;
  std::vector<std::string> names{"test_batch.bin"};
  if (split == Split::train) {
    names.clear();
    for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  }
  ImageSet::Source source;
  source.name = "cifar10";
  source.first = 1;
  source.stride = kRecord;
  source.image = Shape{3, 32, 32};
  source.classes = 10;
  for (const std::string& name : names) {
    const std::vector<std::byte> file = read_maybe_gzip(folder / name, std::uint64_t{1} << 30);
    if (file.empty() || file.size() % kRecord != 0) {
      fail<FormatError>("data", "{} has {} bytes, not a multiple of {}", quote((folder / name).native()), file.size(),
                        kRecord);
    }
    for (std::size_t at = 0; at < file.size(); at += kRecord) {
      source.labels.push_back(std::to_integer<std::uint8_t>(file[at]));
    }
    source.bytes.insert(source.bytes.end(), file.begin(), file.end());
  }
  return std::make_shared<ImageSet>(std::move(source), normalization);
}

}  // namespace lamina
