#include "lamina/models/data/synthetic_set.hpp"

#include <algorithm>
#include <bit>
#include <span>

#include "lamina/core/error.hpp"

namespace lamina {

SyntheticSet::SyntheticSet(const SyntheticOptions& options)
    : Dataset({"synthetic", options.examples, {options.shape, DType::f32}, {Shape{}, DType::i64}, options.classes}),
      options_(options) {
  const auto bits = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(options.classes - 1)));
  if (options.shape.count() < std::max<std::int64_t>(bits, 1)) {
    fail<ValueError>("synthetic", "shape {} has {} elements; {} classes need {} or more", to_string(options.shape),
                     options.shape.count(), options.classes, std::max<std::int64_t>(bits, 1));
  }
  if (!(options.noise >= 0) || !(options.noise < 1)) {
    fail<ValueError>("synthetic", "noise is {}; it is in [0, 1)", options.noise);
  }
}

void SyntheticSet::read_example(const Example& example, std::span<std::byte> in, std::span<std::byte> label) const {
  const std::int64_t c = example.index % classes();
  elements<std::int64_t>(label)[0] = c;
  const std::span<float> out = elements<float>(in);
  const auto bits = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(classes() - 1)));
  const Rng pattern = data_rng(options_.seed, DataStream::pattern);
  const Rng noise = data_rng(options_.seed, DataStream::noise, options_.split == Split::train ? 0 : 1);
  const auto amplitude = static_cast<float>(options_.noise);
  const auto class_key = static_cast<std::uint64_t>(c);
  const auto example_key = static_cast<std::uint64_t>(example.index);  // not the id: the set is the same every epoch
  for (std::size_t at = 0; at < out.size(); at += 4) {
    const PhiloxCounter signs = pattern.quad(class_key, at / 4);
    const PhiloxCounter shifts = noise.quad(example_key, at / 4);
    for (std::size_t i = at; i < std::min(at + 4, out.size()); ++i) {
      // The first elements spell the class's number: no two patterns are alike however small the shape.
      const bool up = i < bits ? ((class_key >> i) & 1u) != 0 : (signs[i - at] >> 31) != 0;
      out[i] = (up ? 1.0f : -1.0f) + amplitude * (2.0f * unit_float(shifts[i - at]) - 1.0f);
    }
  }
}

}  // namespace lamina
