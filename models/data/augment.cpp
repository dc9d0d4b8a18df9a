#include "lamina/models/data/augment.hpp"

#include <algorithm>

#include "lamina/core/error.hpp"

namespace lamina {

namespace {

class CropFlipSet final : public Dataset {
 public:
  CropFlipSet(std::shared_ptr<const Dataset> images, const CropFlip& options, std::vector<float> fill)
      : Dataset({images->name(), images->size(), images->input(), images->label(), images->classes()}),
        images_(std::move(images)),
        options_(options),
        fill_(std::move(fill)) {
    if (input().dtype != DType::f32 || input().shape.rank() != 3) {
      fail<ShapeError>("crop_flip", "{} has inputs {}{}; f32(C,H,W) expected", name(), name_of(input().dtype),
                       to_string(input().shape));
    }
    if (options_.padding < 0) fail<ValueError>("crop_flip", "padding is {}; it is >= 0", options_.padding);
    const auto channels = static_cast<std::size_t>(input().shape[0]);
    if (fill_.size() <= 1) fill_.resize(channels, fill_.empty() ? 0.0f : fill_[0]);
    if (fill_.size() != channels) {
      fail<ValueError>("crop_flip", "{} fill values for {} channels", fill_.size(), channels);
    }
  }

  void read_example(const Example& example, std::span<std::byte> in, std::span<std::byte> label) const override {
    const std::span<float> out = elements<float>(in);
    std::vector<float> image(out.size());
    images_->read_example(example, std::as_writable_bytes(std::span(image)), label);

    const Rng rng = data_rng(options_.seed, DataStream::augment);
    const auto places = static_cast<std::uint64_t>(2 * std::int64_t{options_.padding} + 1);
    const std::int64_t dy = static_cast<std::int64_t>(rng.below(places, example.id, 0)) - options_.padding;
    const std::int64_t dx = static_cast<std::int64_t>(rng.below(places, example.id, 1)) - options_.padding;
    const bool mirrored = options_.flip && rng.below(2, example.id, 2) == 1;
    const std::int64_t height = input().shape[1];
    const std::int64_t width = input().shape[2];
    std::size_t to = 0;
    for (std::int64_t c = 0; c < input().shape[0]; ++c) {
      for (std::int64_t y = 0; y < height; ++y) {
        const std::int64_t row = y + dy;
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t column = (mirrored ? width - 1 - x : x) + dx;
          const bool inside = row >= 0 && row < height && column >= 0 && column < width;
          out[to++] = inside ? image[static_cast<std::size_t>((c * height + row) * width + column)]
                             : fill_[static_cast<std::size_t>(c)];
        }
      }
    }
  }

 private:
  std::shared_ptr<const Dataset> images_;
  CropFlip options_;
  std::vector<float> fill_;  // one a channel
};

}  // namespace

std::shared_ptr<const Dataset> crop_flip(std::shared_ptr<const Dataset> images, const CropFlip& options,
                                         std::vector<float> fill) {
  return std::make_shared<CropFlipSet>(std::move(images), options, std::move(fill));
}

}  // namespace lamina
