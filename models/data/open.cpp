#include "lamina/models/data/open.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <system_error>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/models/data/image_set.hpp"
#include "lamina/models/data/synthetic_set.hpp"
#include "lamina/models/data/text_set.hpp"

namespace lamina {

namespace {

constexpr std::string_view kKnown =
    "fashion-mnist, cifar10[:FOLDER], idx:FOLDER, text:FILE, "
    "synthetic[:shape=3x32x32,classes=10,examples=1024,test=128,noise=0.5,seed=0]";

template <class T>
T number(std::string_view key, std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail<ValueError>("data", "synthetic: {}={} is not a number that fits", key, quote(text));
  }
  return value;
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::shared_ptr<const Dataset> open_synthetic(std::string_view text, Split split) {
  SyntheticOptions options;
  options.split = split;
  std::optional<std::int64_t> test_examples;
  if (!text.empty()) {
    for (const std::string_view part : split_at(text, ',')) {
      const auto equals = part.find('=');
      const std::string_view key = part.substr(0, equals);
      const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
      if (key == "shape") {
        std::vector<std::int64_t> dims;
        for (const std::string_view d : split_at(value, 'x')) dims.push_back(number<std::int64_t>(key, d));
        options.shape = Shape(std::span<const std::int64_t>(dims));
      } else if (key == "classes") {
        options.classes = number<std::int64_t>(key, value);
      } else if (key == "examples") {
        options.examples = number<std::int64_t>(key, value);
      } else if (key == "test") {
        test_examples = number<std::int64_t>(key, value);
      } else if (key == "noise") {
        options.noise = number<double>(key, value);
      } else if (key == "seed") {
        options.seed = number<std::uint64_t>(key, value);
      } else {
        fail<ValueError>("data", "synthetic: unknown key {}; known: shape, classes, examples, test, noise, seed",
                         quote(key));
      }
    }
  }
  if (split == Split::test)
    options.examples = test_examples.value_or(options.examples / 8 + (options.examples % 8 > 0));
  return std::make_shared<SyntheticSet>(options);
}

}  // namespace

std::filesystem::path find_data_folder(std::string_view name, std::string_view file,
                                       const std::filesystem::path& explicit_folder) {
  std::vector<std::filesystem::path> places;
  if (!explicit_folder.empty()) {
    places.push_back(explicit_folder);
  } else {
    if (const char* root = std::getenv("LAMINA_DATA"); root != nullptr && *root != '\0') {
      places.push_back(std::filesystem::path(root) / name);
      places.emplace_back(root);
    }
    places.push_back(std::filesystem::path("/usr/share/datasets") / name);
  }
  std::string tried;
  for (const auto& place : places) {
    for (const std::string_view suffix : {"", ".gz"}) {
      std::error_code error;
      if (std::filesystem::exists(place / fmt::format("{}{}", file, suffix), error)) return place;
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", quote(place.native()));
  }
  fail<IoError>("data", "{} was not found: no {}[.gz] in {}; give its folder, or set LAMINA_DATA", name, file, tried);
}

std::shared_ptr<const Dataset> open_dataset(std::string_view spec, const DatasetOptions& options) {
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  const bool test = options.split == Split::test;

  const auto finished = [&](std::shared_ptr<const Dataset> images, const Normalization& normalization) {
    if (!options.augment || test) return images;
    CropFlip augment = *options.augment;
    augment.seed = options.seed;
    if (augment.fill.empty()) {
      for (std::size_t c = 0; c < static_cast<std::size_t>(images->input().shape[0]); ++c) {
        augment.fill.push_back(normalization.black(c));
      }
    }
    return crop_flip(std::move(images), std::move(augment));
  };

  if (name == "fashion-mnist" && colon == std::string_view::npos) {
    const Normalization n = options.standardize ? fashion_mnist_normalization() : Normalization();
    const auto folder =
        find_data_folder(name, test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte", options.folder);
    return finished(open_idx_images(folder, options.split, 10, n, std::string(name)), n);
  }
  if (name == "cifar10") {
    const Normalization n = options.standardize ? cifar10_normalization() : Normalization();
    const std::filesystem::path given = rest.empty() ? options.folder : std::filesystem::path(rest);
    const auto folder = find_data_folder(name, test ? "test_batch.bin" : "data_batch_1.bin", given);
    return finished(open_cifar10(folder, options.split, n), n);
  }
  if (name == "idx" && !rest.empty()) {
    return finished(open_idx_images(rest, options.split, options.classes, Normalization()), Normalization());
  }
  if (name == "text" && !rest.empty()) {
    if (options.augment) fail<ValueError>("data", "augmentation is for images; {} is text", quote(spec));
    return open_text(rest, {options.split, options.context, options.validation_fraction, options.seed});
  }
  if (name == "synthetic" && (colon == std::string_view::npos || !rest.empty())) {
    return finished(open_synthetic(rest, options.split), Normalization());
  }
  fail<ValueError>("data", "unknown data set {}; known: {}", quote(spec), kKnown);
}

}  // namespace lamina
