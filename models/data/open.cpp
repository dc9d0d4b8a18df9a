#include "lamina/models/data/open.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>
#include <system_error>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/options.hpp"
#include "lamina/models/data/image_set.hpp"
#include "lamina/models/data/synthetic_set.hpp"
#include "lamina/models/data/text_set.hpp"

namespace lamina {

namespace {

// A shape as a user gives it: what a Shape cannot hold is a wrong value here.
Shape shape_of(std::span<const std::int64_t> dims) {
  try {
    return Shape(dims);
  } catch (const ShapeError&) {
    fail<ValueError>("data synthetic: option shape", "'{}' is not a shape; up to {} dims, below 2^63 elements",
                     fmt::join(dims, "x"), kMaxRank);
  }
}

SyntheticOptions read_synthetic(NamedOptions& given, Split split) {
  constexpr std::int64_t kMax = std::int64_t{1} << 40;
  SyntheticOptions options;
  options.split = split;
  options.shape = shape_of(given.integers("shape", {3, 32, 32}));
  options.classes = given.integer("classes", options.classes, 1, kMax);
  options.examples = given.integer("examples", options.examples, 1, kMax);
  const std::int64_t test = given.integer("test", (options.examples + 7) / 8, 1, kMax);
  options.noise = given.number("noise", options.noise, 0, 1);
  options.seed = static_cast<std::uint64_t>(given.integer("seed", 0, 0, std::numeric_limits<std::int64_t>::max()));
  if (split == Split::test) options.examples = test;
  return options;
}

}  // namespace

std::string known_datasets() {
  NamedOptions synthetic("data", "synthetic");
  read_synthetic(synthetic, Split::train);
  return fmt::format("fashion-mnist, cifar10[:FOLDER], idx:FOLDER, text:FILE, synthetic[:{}]", synthetic.defaults());
}

std::filesystem::path find_data_folder(std::string_view name, std::string_view file,
                                       const std::filesystem::path& explicit_folder) {
  std::vector<std::filesystem::path> places;
  if (!explicit_folder.empty()) {
    places.push_back(explicit_folder);
  } else {
    if (const char* root = std::getenv("LAMINA_DATA"); root != nullptr && *root != '\0') {
      std::error_code error;
      if (!std::filesystem::is_directory(root, error)) {
        fail<ValueError>("LAMINA_DATA", "the environment names {}, which is no folder", quote(root));
      }
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
  if (!options.folder.empty() && name != "fashion-mnist" && !(name == "cifar10" && rest.empty())) {
    fail<ValueError>("data", "{} has no use for the data folder {}", quote(spec), quote(options.folder.native()));
  }

  const auto finished = [&](std::shared_ptr<const Dataset> images, const Normalization& normalization) {
    if (!options.augment || test) return images;
    CropFlip augment = *options.augment;
    augment.seed = options.seed;
    std::vector<float> black;
    for (std::size_t c = 0; images->input().shape.rank() == 3 && c < static_cast<std::size_t>(images->input().shape[0]);
         ++c) {
      black.push_back(normalization.black(c));
    }
    return crop_flip(std::move(images), augment, std::move(black));
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
  if (name == "synthetic") {
    NamedOptions given("data", spec);
    const SyntheticOptions synthetic = read_synthetic(given, options.split);
    given.finish();
    return finished(std::make_shared<SyntheticSet>(synthetic), Normalization());
  }
  fail<ValueError>("data", "unknown data set {}; known: {}", quote(spec), known_datasets());
}

}  // namespace lamina
