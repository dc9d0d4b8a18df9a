#include "lamina/models/data/dataset.hpp"

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"

namespace lamina {

Dataset::Dataset(Info info) : info_(std::move(info)) {
  if (info_.size < 1) fail<ValueError>("data", "{} has no examples", info_.name);
  if (info_.classes < 1) fail<ValueError>("data", "{} has {} classes", info_.name, info_.classes);
}

Batch Dataset::read(const Device& device, std::span<const Example> examples) const {
  for (const Example& e : examples) {
    if (e.index < 0 || e.index >= size()) {
      fail<IndexError>("data", "example {} of {}, which has {}", e.index, name(), size());
    }
  }
  const auto count = static_cast<std::int64_t>(examples.size());
  const auto input_bytes = static_cast<std::size_t>(input().bytes());
  const auto label_bytes = static_cast<std::size_t>(label().bytes());
  Batch batch;
  batch.ids.reserve(examples.size());
  for (const Example& e : examples) batch.ids.push_back(e.id);
  std::vector<std::byte> labels(examples.size() * label_bytes);
  batch.inputs = tensor_from(device, input().shape.inserted(0, count), input().dtype, [&](std::span<std::byte> inputs) {
    for (std::size_t i = 0; i < examples.size(); ++i) {
      read_example(examples[i], inputs.subspan(i * input_bytes, input_bytes),
                   std::span(labels).subspan(i * label_bytes, label_bytes));
    }
  });
  batch.labels = Tensor::from_bytes(device, label().shape.inserted(0, count), label().dtype, labels);
  return batch;
}

Batch Dataset::read(const Device& device, std::span<const std::int64_t> indices) const {
  std::vector<Example> examples;
  examples.reserve(indices.size());
  for (const std::int64_t i : indices) examples.push_back({i, static_cast<std::uint64_t>(i)});
  return read(device, examples);
}

}  // namespace lamina
