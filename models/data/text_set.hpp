// Text as bytes: every byte of a file is a token 0..255. An example is a window of T inputs and the T bytes that
// follow each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lamina/models/data/dataset.hpp"

namespace lamina {

struct TextOptions {
  Split split = Split::train;
  std::int64_t context = 128;        ///< T: tokens of one example, >= 1
  double validation_fraction = 0.1;  ///< of the file, its end, held out as the test split; in (0, 1)
  std::uint64_t seed = 0;            ///< of the training windows' places
};

/// Inputs and labels are i64 (T); 256 classes.
///
/// The held-out end has k*T + 1 bytes, k the most that the fraction allows (at least one window), and falls into k
/// windows that are disjoint and cover it: each of its bytes but the first is a label exactly once. Training windows
/// lie wherever (seed, example id) says, in the bytes before; an epoch has as many as would fit side by side.
class TextSet final : public Dataset {
 public:
  /// Throws ValueError for options outside their ranges, FormatError for a text too short for one window in each split.
  TextSet(std::vector<std::byte> text, std::string name, const TextOptions& options);

  void read_example(const Example& example, std::span<std::byte> input, std::span<std::byte> label) const override;

 private:
  static Info plan(std::int64_t length, std::string name, const TextOptions& options);

  std::vector<std::byte> text_;  // of this split
  bool random_;
  std::uint64_t seed_;
};

/// A file of any bytes, plain or gzip. Throws IoError, FormatError, ValueError; FormatError for one that is larger, or
/// unpacks to more, than a third of the memory available, or than kMaxFileBytes.
std::shared_ptr<const Dataset> open_text(const std::filesystem::path& path, const TextOptions& options);

}  // namespace lamina
