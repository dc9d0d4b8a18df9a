// Synthetic examples: labels are a function of the inputs that a model can learn, made from a seed and no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lamina/models/data/dataset.hpp"

namespace lamina {

struct SyntheticOptions {
  Split split = Split::train;
  Shape shape{3, 32, 32};        ///< of one input
  std::int64_t classes = 10;     ///< >= 1
  std::int64_t examples = 1024;  ///< of the split, >= 1
  double noise = 0.5;            ///< in [0, 1)
  std::uint64_t seed = 0;
};

/// Inputs are f32 of the given shape, labels i64 (). Class c has a pattern of -1 and +1, different from every other
/// class's; an input is its class's pattern plus noise, uniform in (-noise, noise), so that its signs give its label
/// exactly. Example i has class i mod classes. The two splits share patterns and differ in noise.
class SyntheticSet final : public Dataset {
 public:
  /// Throws ValueError for options outside their ranges and for a shape with fewer elements than bits are needed to
  /// tell the classes apart.
  explicit SyntheticSet(const SyntheticOptions& options);

  void read_example(const Example& example, std::span<std::byte> input, std::span<std::byte> label) const override;

 private:
  SyntheticOptions options_;
};

}  // namespace lamina
