// Dataset: examples by number, made into batches on any device. What an example holds may depend on its id in the run
// (random windows, augmentation), never on the batch, thread or rank it is read in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lamina/core/rng.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina {

enum class Split { train, test };

/// Which example of the set, and its id in the run. A Loader numbers them `epoch * size + index`: unique in a run and
/// the same for every shuffle seed, batch size, rank and worker count. Random streams are keyed by it.
struct Example {
  std::int64_t index = 0;
  std::uint64_t id = 0;
};

/// N examples. Images: inputs f32 (N,C,H,W), labels i64 (N). Text: inputs i64 (N,T), labels i64 (N,T), the inputs
/// shifted by one. N may be 0 (see Loader).
struct Batch {
  Tensor inputs;
  Tensor labels;
  std::vector<std::uint64_t> ids;  ///< of the examples, in order
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
};

/// Immutable once made; all members are thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const std::string& name() const noexcept { return info_.name; }
  /// Number of examples, >= 1.
  std::int64_t size() const noexcept { return info_.size; }
  /// Shape and dtype of one example, without the batch dim.
  const Meta& input() const noexcept { return info_.input; }
  const Meta& label() const noexcept { return info_.label; }
  /// Labels are in [0, classes).
  std::int64_t classes() const noexcept { return info_.classes; }

  /// Throws IndexError for an index outside [0, size), OutOfMemory, and what reading throws.
  Batch read(const Device& device, std::span<const Example> examples) const;
  /// The same with each example's index as its id: what epoch 0 sees.
  Batch read(const Device& device, std::span<const std::int64_t> indices) const;

  /// Writes one example, input and label, in row-major order; the spans have the sizes of input() and label() and
  /// their alignment. The index is in range.
  virtual void read_example(const Example& example, std::span<std::byte> input, std::span<std::byte> label) const = 0;

 protected:
  struct Info {
    std::string name;
    std::int64_t size = 0;
    Meta input;
    Meta label;
    std::int64_t classes = 0;
  };
  /// Throws ValueError for a set without examples or classes.
  explicit Dataset(Info info);

 private:
  Info info_;
};

/// The random streams of this room. They key an Rng where a model would put its layer; no model has that many.
enum class DataStream : std::uint64_t {
  shuffle = 0xDA7A'0000'0001,
  window = 0xDA7A'0000'0002,
  augment = 0xDA7A'0000'0003,
  pattern = 0xDA7A'0000'0004,
  noise = 0xDA7A'0000'0005,
};

constexpr Rng data_rng(std::uint64_t seed, DataStream stream, std::uint64_t step = 0) noexcept {
  return {seed, static_cast<std::uint64_t>(stream), step};
}

/// The elements of an example's bytes; T is that of its dtype.
template <class T>
std::span<T> elements(std::span<std::byte> bytes) noexcept {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

}  // namespace lamina
