#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/models/data/augment.hpp"
#include "lamina/models/data/image_set.hpp"
#include "lamina/models/data/open.hpp"
#include "lamina/models/data/synthetic_set.hpp"
#include "lamina/models/data/text_set.hpp"
#include "lamina/tests/support/host_device.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using test::bytes_of;
using test::put;
using test::TempDir;

std::string idx(std::vector<std::uint32_t> dims, const std::string& data) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::uint32_t d : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift);
  }
  return out + data;
}

// Both splits of a set of 2x2 images: pixels count up from 0.
void put_idx(const TempDir& dir, const std::string& labels = "\0\1\2", std::uint32_t images = 3) {
  std::string pixels;
  for (std::uint32_t i = 0; i < images * 4; ++i) pixels += static_cast<char>(i);
  for (const std::string set : {"train", "t10k"}) {
    put(dir / (set + "-images-idx3-ubyte"), idx({images, 2, 2}, pixels));
    put(dir / (set + "-labels-idx1-ubyte"), idx({static_cast<std::uint32_t>(labels.size())}, labels));
  }
}

const std::string k012{'\0', '\1', '\2'};

std::vector<std::int64_t> all(const Dataset& set) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(set.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::int64_t>(i);
  return out;
}

// Sets an environment variable for the length of a test.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Environment() { ::unsetenv(name_); }

 private:
  const char* name_;
};

TEST(IdxImages, ScaledAndStandardized) {
  const TempDir dir;
  put_idx(dir, k012);
  const Device device = test::host_device();
  const auto set = open_dataset("idx:" + dir.path().native());
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->classes(), 10);
  EXPECT_EQ(set->input(), (Meta{Shape{1, 2, 2}, DType::f32}));
  const std::int64_t which[] = {2, 0};
  const Batch batch = set->read(device, which);
  EXPECT_EQ(batch.inputs.shape(), (Shape{2, 1, 2, 2}));
  EXPECT_EQ(batch.labels.meta(), (Meta{Shape{2}, DType::i64}));
  EXPECT_EQ(to_vector<std::int64_t>(batch.labels), (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(batch.ids, (std::vector<std::uint64_t>{2, 0}));
  EXPECT_EQ(to_vector<float>(batch.inputs),
            (std::vector<float>{8.0f / 255.0f, 9.0f / 255.0f, 10.0f / 255.0f, 11.0f / 255.0f, 0.0f, 1.0f / 255.0f,
                                2.0f / 255.0f, 3.0f / 255.0f}));
  const auto scaled = open_idx_images(dir.path(), Split::test, 3, {{0.5f}, {0.25f}});
  EXPECT_EQ(to_vector<float>(scaled->read(device, which).inputs)[0], (8.0f / 255.0f - 0.5f) / 0.25f);
}

TEST(IdxImages, RankFourAndOtherSpellings) {
  const TempDir dir;
  put(dir / "train-images.idx3-ubyte", idx({2, 3, 1, 1}, "abcdef"));
  put(dir / "train-labels.idx1-ubyte", idx({2}, "\1\1"));
  const auto set = open_idx_images(dir.path(), Split::train, 2, {{0, 0, 0}, {1, 2, 4}});
  EXPECT_EQ(set->input().shape, (Shape{3, 1, 1}));
  const std::int64_t which[] = {1};
  EXPECT_EQ(to_vector<float>(set->read(test::host_device(), which).inputs),
            (std::vector<float>{100.0f / 255.0f, 101.0f / 255.0f / 2, 102.0f / 255.0f / 4}));
  LAMINA_EXPECT_ERROR(open_idx_images(dir.path(), Split::train, 2, {{0, 0}, {1}}), ValueError,
                      "2 values for 3 channels");
  LAMINA_EXPECT_ERROR(open_idx_images(dir.path(), Split::train, 2, {{0}, {0}}), ValueError, "std 0");
}

TEST(IdxImages, DamagedSetsAreRefused) {
  const TempDir dir;
  const std::string spec = "idx:" + dir.path().native();
  LAMINA_EXPECT_ERROR(open_dataset(spec), IoError, "none of train-images-idx3-ubyte, train-images-idx3-ubyte.gz");
  put_idx(dir, k012, 4);
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "has 4 images");
  put_idx(dir, std::string("\0\1\x0a", 3));
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "label 10 of example 2 is outside [0, 10)");
  put_idx(dir, "", 0);
  LAMINA_EXPECT_ERROR(open_dataset(spec), ValueError, "no examples");
  put_idx(dir, k012);
  put(dir / "train-images-idx3-ubyte", idx({3, 2, 2}, std::string(11, 'x')));  // one byte short
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "11 bytes of elements");
  put(dir / "train-images-idx3-ubyte", idx({3, 2, 2}, std::string(13, 'x')));  // one too many
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "13 bytes of elements");
  put(dir / "train-images-idx3-ubyte", idx({12}, std::string(12, 'x')));
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "holds (12)");
  put(dir / "train-images-idx3-ubyte", idx({3, 0, 2}, ""));
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "(1,0,2)");
  put_idx(dir, k012);
  put(dir / "train-labels-idx1-ubyte", idx({3, 1}, k012));
  LAMINA_EXPECT_ERROR(open_dataset(spec), FormatError, "holds (3,1)");
}

TEST(Dataset, IndicesAndDevices) {
  const auto set = open_dataset("synthetic:shape=3,classes=2,examples=4");
  const Device device = test::host_device();
  for (const std::int64_t bad : {std::int64_t{-1}, std::int64_t{4}}) {
    const std::int64_t which[] = {0, bad};
    LAMINA_EXPECT_ERROR(set->read(device, which), IndexError, "of synthetic, which has 4");
  }
  const Batch none = set->read(device, std::span<const Example>());
  EXPECT_EQ(none.inputs.shape(), (Shape{0, 3}));
  EXPECT_EQ(none.labels.shape(), Shape{0});
  const std::int64_t which[] = {3, 1};
  const Batch near = set->read(device, which);
  const Batch far = set->read(test::host_device({.host_accessible = false}), which);
  EXPECT_EQ(to_vector<float>(near.inputs), to_vector<float>(far.inputs));
  EXPECT_EQ(to_vector<std::int64_t>(near.labels), to_vector<std::int64_t>(far.labels));
  EXPECT_EQ(set->read(test::host_device({.storage = false}), which).inputs.shape(), (Shape{2, 3}));
}

TEST(Cifar10, BinaryFiles) {
  const TempDir dir;
  const auto record = [](char label, char pixel) { return std::string(1, label) + std::string(3072, pixel); };
  for (int i = 1; i <= 5; ++i) {
    put(dir / ("data_batch_" + std::to_string(i) + ".bin"), record(static_cast<char>(i), static_cast<char>(10 * i)));
  }
  put(dir / "test_batch.bin", record('\x09', '\xff') + record('\0', '\0'));
  const std::string spec = "cifar10:" + dir.path().native();
  const auto train = open_dataset(spec, {.standardize = false});
  EXPECT_EQ(train->size(), 5);
  const std::int64_t which[] = {4};
  const Batch batch = train->read(test::host_device(), which);
  EXPECT_EQ(batch.inputs.shape(), (Shape{1, 3, 32, 32}));
  EXPECT_EQ(to_vector<float>(batch.inputs), std::vector<float>(3072, 50.0f / 255.0f));
  EXPECT_EQ(batch.labels.item(), 5);
  const auto held_out = open_dataset(spec, {.split = Split::test});
  EXPECT_EQ(held_out->size(), 2);
  const std::int64_t first[] = {0};
  EXPECT_FLOAT_EQ(to_vector<float>(held_out->read(test::host_device(), first).inputs)[0], (1 - 0.4914f) / 0.2470f);

  put(dir / "test_batch.bin", record('\x09', '\xff') + "x");
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.split = Split::test}), FormatError,
                      "has 3074 bytes, not a multiple of 3073");
  put(dir / "test_batch.bin", "");
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.split = Split::test}), FormatError, "has 0 bytes");
  put(dir / "test_batch.bin", record('\x0a', '\0'));
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.split = Split::test}), FormatError, "label 10");
  std::filesystem::remove(dir / "data_batch_3.bin");
  LAMINA_EXPECT_ERROR(open_dataset(spec), IoError, "data_batch_3.bin");
}

TEST(Text, ValidationWindowsAreDisjointAndCover) {
  for (const std::int64_t length : {50, 97, 100, 1000, 1003}) {
    for (const std::int64_t context : {1, 3, 7, 16}) {
      std::vector<std::byte> text;
      for (std::int64_t i = 0; i < length; ++i) text.push_back(static_cast<std::byte>(mix64(i)));
      const TextSet held_out(text, "t", {.split = Split::test, .context = context, .validation_fraction = 0.25});
      const TextSet train(text, "t", {.split = Split::train, .context = context, .validation_fraction = 0.25});
      const std::int64_t bytes = held_out.size() * context + 1;
      EXPECT_LE(bytes, std::max<std::int64_t>(length / 4, context + 1));
      EXPECT_GT(bytes, length / 4 - context - 1);
      const Batch batch = held_out.read(test::host_device(), all(held_out));
      EXPECT_EQ(batch.inputs.meta(), (Meta{Shape{held_out.size(), context}, DType::i64}));
      EXPECT_EQ(batch.labels.meta(), batch.inputs.meta());
      const auto inputs = to_vector<std::int64_t>(batch.inputs);
      const auto labels = to_vector<std::int64_t>(batch.labels);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(length - bytes) + i;
        ASSERT_EQ(inputs[i], std::to_integer<std::int64_t>(text[at]));
        ASSERT_EQ(labels[i], std::to_integer<std::int64_t>(text[at + 1]));
      }
      EXPECT_EQ(train.size(), (length - bytes - 1) / context);
    }
  }
}

TEST(Text, TrainingWindowsLieAnywhereButInTheHeldOutText) {
  std::vector<std::byte> text(200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i);
  const TextSet train(text, "t", {.context = 8, .seed = 1});
  EXPECT_EQ(train.classes(), 256);
  std::set<std::int64_t> starts;
  std::vector<Example> examples;
  for (std::uint64_t id = 0; id < 4000; ++id) examples.push_back({0, id});
  const Batch batch = train.read(test::host_device(), examples);
  const auto inputs = to_vector<std::int64_t>(batch.inputs);
  const auto labels = to_vector<std::int64_t>(batch.labels);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i % 8 == 0) starts.insert(inputs[i]);
    ASSERT_EQ(inputs[i], inputs[i / 8 * 8] + static_cast<std::int64_t>(i % 8));
    ASSERT_EQ(labels[i], inputs[i] + 1);
  }
  // 20 bytes are held out at most: 17 = 2 windows of 8 and one more. Starts are 0 .. 183 - 9.
  EXPECT_EQ(starts.size(), 175u);
  EXPECT_EQ(*starts.rbegin(), 174);
  // Keyed by the id and the seed, not by the index.
  const auto window = [&](const TextSet& set, Example example) {
    return to_vector<std::int64_t>(set.read(test::host_device(), std::span(&example, 1)).inputs);
  };
  EXPECT_EQ(window(train, {0, 77}), window(train, {5, 77}));
  EXPECT_NE(window(train, {0, 77}), window(train, {0, 78}));
  EXPECT_NE(window(train, {0, 77}), window(TextSet(text, "t", {.context = 8, .seed = 2}), {0, 77}));
}

TEST(Text, OptionsAndShortTexts) {
  const TempDir dir;
  put(dir / "t", "0123456789");
  const std::string spec = "text:" + (dir / "t").native();
  EXPECT_EQ(open_dataset(spec, {.context = 4})->size(), 1);
  EXPECT_EQ(open_dataset(spec, {.split = Split::test, .context = 4})->size(), 1);
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.context = 5}), FormatError, "has 10 bytes, too few for a context of 5");
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.context = std::int64_t{1} << 62}), FormatError, "too few");
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.context = 0}), ValueError, "it is >= 1");
  for (const double fraction : {0.0, 1.0, -0.5, std::nan("")}) {
    LAMINA_EXPECT_ERROR(open_dataset(spec, {.context = 2, .validation_fraction = fraction}), ValueError,
                        "between 0 and 1");
  }
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.context = 2, .validation_fraction = 0.999}), FormatError, "too few");
  LAMINA_EXPECT_ERROR(open_dataset(spec, {.augment = CropFlip{}}), ValueError, "augmentation is for images");
  LAMINA_EXPECT_ERROR(open_dataset("text:/absent.txt"), IoError, "/absent.txt'");
}

TEST(Synthetic, LabelsAreAFunctionOfTheInputs) {
  for (const std::string spec :
       {"synthetic:shape=3x4x4,classes=10,examples=200", "synthetic:shape=2,classes=4,examples=64",
        "synthetic:shape=1,classes=1,examples=3", "synthetic:noise=0.99,shape=8,classes=200"}) {
    std::map<std::vector<bool>, std::int64_t> label_of;
    for (const Split split : {Split::train, Split::test}) {
      const auto set = open_dataset(spec, {.split = split});
      const Batch batch = set->read(test::host_device(), all(*set));
      const auto inputs = to_vector<float>(batch.inputs);
      const auto labels = to_vector<std::int64_t>(batch.labels);
      const auto count = static_cast<std::size_t>(set->input().shape.count());
      for (std::size_t i = 0; i < labels.size(); ++i) {
        std::vector<bool> signs;
        for (std::size_t j = 0; j < count; ++j) signs.push_back(inputs[i * count + j] > 0);
        const auto found = label_of.emplace(signs, labels[i]).first;
        EXPECT_EQ(found->second, labels[i]) << spec;
      }
    }
    EXPECT_EQ(label_of.size(), static_cast<std::size_t>(open_dataset(spec)->classes())) << spec;
  }
}

TEST(Synthetic, SeedsAndSplitsDiffer) {
  const auto inputs = [](const std::string& spec, Split split) {
    const auto set = open_dataset(spec, {.split = split});
    return to_vector<float>(set->read(test::host_device(), all(*set)).inputs);
  };
  const std::string spec = "synthetic:shape=5,classes=3,examples=10,test=10";
  EXPECT_EQ(inputs(spec, Split::train), inputs(spec + ",seed=0", Split::train));
  EXPECT_NE(inputs(spec, Split::train), inputs(spec + ",seed=1", Split::train));
  EXPECT_NE(inputs(spec, Split::train), inputs(spec, Split::test));
  EXPECT_EQ(open_dataset("synthetic")->size(), 1024);
  EXPECT_EQ(open_dataset("synthetic", {.split = Split::test})->size(), 128);
  EXPECT_EQ(open_dataset("synthetic")->input().shape, (Shape{3, 32, 32}));
}

TEST(OpenDataset, SaysWhatIsAllowed) {
  for (const std::string spec : {"", "mnist", "fashion-mnist:x", "idx", "idx:", "text", "text:"}) {
    LAMINA_EXPECT_ERROR(open_dataset(spec), ValueError,
                        "known: fashion-mnist, cifar10[:FOLDER], idx:FOLDER, text:FILE");
  }
  LAMINA_EXPECT_ERROR(open_dataset("synthetic:size=3"), ValueError,
                      "synthetic has no option 'size'; allowed: shape, classes, examples, test, noise, seed");
  const auto refused = [](const std::string& options, const std::string& part) {
    LAMINA_EXPECT_ERROR(open_dataset("synthetic:" + options), ValueError, part);
  };
  refused("classes=ten", "option classes: 'ten' is not an integer");
  refused("classes", "'classes' in 'synthetic:classes' is not key=value");
  refused("classes=2,classes=2", "given twice");
  refused("shape=3x", "option shape: '' is not an integer");
  refused("shape=-3", "option shape: '-3' is not an integer");
  refused("examples=99999999999999999999", "is not an integer in");
  refused("shape=0", "0 elements");
  refused("shape=2,classes=5", "5 classes need 3 or more");
  refused("classes=0", "'0' is not an integer in [1,");
  refused("examples=0", "'0' is not an integer in [1,");
  refused("noise=1", "in [0, 1)");
  refused("noise=nan", "'nan' is not a number in [0, 1]");
  refused("noise=-0.1", "is not a number in [0, 1]");
  LAMINA_EXPECT_ERROR(SyntheticSet({.classes = 0}), ValueError, "0 classes");
  LAMINA_EXPECT_ERROR(SyntheticSet({.examples = 0}), ValueError, "no examples");
}

TEST(OpenDataset, LooksInThePlacesItNames) {
  const TempDir dir;
  const std::string file = "train-images-idx3-ubyte";
  LAMINA_EXPECT_ERROR(open_dataset("fashion-mnist", {.folder = dir.path()}), IoError,
                      "no train-images-idx3-ubyte[.gz] in '" + dir.path().native() + "'; give its folder");
  const Environment environment("LAMINA_DATA", dir.path().native());
  LAMINA_EXPECT_ERROR(
      find_data_folder("no-such-set", file), IoError,
      "in '" + (dir / "no-such-set").native() + "', '" + dir.path().native() + "', '/usr/share/datasets/no-such-set'");
  {
    const Environment absent("LAMINA_DATA", (dir / "absent").native());
    LAMINA_EXPECT_ERROR(open_dataset("fashion-mnist"), ValueError, "LAMINA_DATA");
    EXPECT_EQ(open_dataset("synthetic")->size(), 1024) << "looked for nothing";
  }
  for (const std::string spec : {"synthetic", "text:/absent.txt", "idx:/absent", "cifar10:/absent"}) {
    LAMINA_EXPECT_ERROR(open_dataset(spec, {.folder = dir.path()}), ValueError, "no use for the data folder");
  }
  const Environment again("LAMINA_DATA", dir.path().native());
  put_idx(dir, k012);
  EXPECT_EQ(open_dataset("fashion-mnist")->size(), 3);
  std::filesystem::create_directory(dir / "fashion-mnist");
  put(dir / "fashion-mnist" / (file + ".gz"), "");
  EXPECT_EQ(find_data_folder("fashion-mnist", file), dir / "fashion-mnist");
  EXPECT_EQ(find_data_folder("fashion-mnist", file, dir.path()), dir.path());
}

TEST(FashionMnist, TheRealFiles) {
  std::shared_ptr<const Dataset> held_out;
  try {
    held_out = open_dataset("fashion-mnist", {.split = Split::test});
  } catch (const IoError& error) {
    GTEST_SKIP() << error.what();
  }
  EXPECT_EQ(held_out->size(), 10'000);
  EXPECT_EQ(held_out->classes(), 10);
  EXPECT_EQ(held_out->input().shape, (Shape{1, 28, 28}));
  const Batch batch = held_out->read(test::host_device(), all(*held_out));
  std::vector<int> counts(10);
  for (const std::int64_t label : to_vector<std::int64_t>(batch.labels)) ++counts[static_cast<std::size_t>(label)];
  EXPECT_EQ(counts, std::vector<int>(10, 1000));

  const auto train = open_dataset("fashion-mnist");
  ASSERT_EQ(train->size(), 60'000);
  double sum = 0, squares = 0;
  std::vector<std::byte> pixels(28 * 28 * 4), label(8);
  for (std::int64_t i = 0; i < train->size(); ++i) {
    train->read_example({i, 0}, pixels, label);
    for (const float p : elements<float>(pixels)) {
      sum += p;
      squares += double{p} * p;
    }
  }
  const double count = 60'000.0 * 28 * 28;
  EXPECT_NEAR(sum / count, 0, 1e-3);
  EXPECT_NEAR(std::sqrt(squares / count), 1, 1e-3);
}

// An image whose pixel (y, x) of channel c is 100 c + 10 y + x + 1.
class Grid final : public Dataset {
 public:
  Grid() : Dataset({"grid", 50, {Shape{2, 4, 4}, DType::f32}, {Shape{}, DType::i64}, 7}) {}
  static float pixel(std::int64_t c, std::int64_t y, std::int64_t x) {
    return y < 0 || y > 3 || x < 0 || x > 3 ? -1.0f : static_cast<float>(100 * c + 10 * y + x + 1);
  }
  void read_example(const Example& example, std::span<std::byte> in, std::span<std::byte> label) const override {
    elements<std::int64_t>(label)[0] = example.index % 7;
    const auto out = elements<float>(in);
    for (std::int64_t i = 0; i < 32; ++i) out[static_cast<std::size_t>(i)] = pixel(i / 16, i / 4 % 4, i % 4);
  }
};

TEST(CropFlip, EveryOffsetAndMirroringAndNothingElse) {
  const auto grid = std::make_shared<Grid>();
  const auto set = crop_flip(grid, {.padding = 1, .flip = true, .seed = 3}, {-1});
  EXPECT_EQ(set->size(), 50);
  std::map<std::vector<float>, int> seen;
  std::vector<Example> examples;
  for (std::uint64_t id = 0; id < 1800; ++id) examples.push_back({static_cast<std::int64_t>(id % 50), id});
  const Batch batch = set->read(test::host_device(), examples);
  const auto pixels = to_vector<float>(batch.inputs);
  for (std::size_t i = 0; i < examples.size(); ++i) {
    ++seen[{pixels.begin() + static_cast<std::ptrdiff_t>(32 * i),
            pixels.begin() + static_cast<std::ptrdiff_t>(32 * i + 32)}];
  }
  EXPECT_EQ(to_vector<std::int64_t>(batch.labels)[13], 6);
  ASSERT_EQ(seen.size(), 18u);
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      for (const bool mirrored : {false, true}) {
        std::vector<float> expected;
        for (int i = 0; i < 32; ++i) {
          const int x = mirrored ? 3 - i % 4 : i % 4;
          expected.push_back(Grid::pixel(i / 16, i / 4 % 4 + dy, x + dx));
        }
        EXPECT_NEAR(seen[expected], 100, 40) << dy << ' ' << dx << ' ' << mirrored;
      }
    }
  }
  // The id decides; the same id is the same picture.
  const Example one{4, 99}, again{4, 99};
  EXPECT_EQ(to_vector<float>(set->read(test::host_device(), std::span(&one, 1)).inputs),
            to_vector<float>(set->read(test::host_device(), std::span(&again, 1)).inputs));
}

TEST(CropFlip, OptionsAndTheTrainingSplitOnly) {
  const auto grid = std::make_shared<Grid>();
  const auto same = crop_flip(grid, {.padding = 0, .flip = false});
  const std::int64_t which[] = {7};
  EXPECT_EQ(to_vector<float>(same->read(test::host_device(), which).inputs),
            to_vector<float>(grid->read(test::host_device(), which).inputs));
  LAMINA_EXPECT_ERROR(crop_flip(grid, {.padding = -1}), ValueError, "padding is -1");
  LAMINA_EXPECT_ERROR(crop_flip(grid, {}, {0, 0, 0}), ValueError, "3 fill values for 2 channels");
  LAMINA_EXPECT_ERROR(open_dataset("synthetic:shape=10", {.augment = CropFlip{}}), ShapeError, "f32(C,H,W) expected");

  const TempDir dir;
  put_idx(dir, k012);
  const auto open = [&](Split split, bool augment) {
    DatasetOptions options{.split = split, .folder = dir.path(), .seed = 5};
    if (augment) options.augment = CropFlip{};
    const auto set = open_dataset("fashion-mnist", options);
    return to_vector<float>(set->read(test::host_device(), all(*set)).inputs);
  };
  EXPECT_EQ(open(Split::test, true), open(Split::test, false));
  EXPECT_NE(open(Split::train, true), open(Split::train, false));
  const auto padded = open(Split::train, true);  // 2x2 images in a frame of 4: black is what is mostly seen
  EXPECT_NE(std::find(padded.begin(), padded.end(), fashion_mnist_normalization().black(0)), padded.end());
}

}  // namespace
}  // namespace lamina
