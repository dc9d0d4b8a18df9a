#include "lamina/models/data/text_set.hpp"

#include <algorithm>

#include "lamina/core/available_memory.hpp"
#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"

namespace lamina {

namespace {

// How a text of some length falls into the two splits.
struct Cut {
  std::int64_t train_bytes = 0;
  std::int64_t train_windows = 0;
  std::int64_t test_windows = 0;
};

Cut cut(std::int64_t length, const std::string& name, const TextOptions& options) {
  const std::int64_t context = options.context;
  if (context < 1) fail<ValueError>("text", "a context of {} tokens; it is >= 1", context);
  if (!(options.validation_fraction > 0) || !(options.validation_fraction < 1)) {
    fail<ValueError>("text", "a validation fraction of {}; it is between 0 and 1", options.validation_fraction);
  }
  const auto held_out = static_cast<std::int64_t>(static_cast<double>(length) * options.validation_fraction);
  const std::int64_t test_windows = std::max<std::int64_t>((held_out - 1) / context, 1);
  // One window and its last label for each split; written so that no context can overflow.
  if (length < 4 || context > (length - 2) / 2 || test_windows > (length - 2 - context) / context) {
    fail<FormatError>("text", "{} has {} bytes, too few for a context of {} in training and in held-out text",
                      quote(name), length, context);
  }
  const std::int64_t train_bytes = length - (test_windows * context + 1);
  return {train_bytes, (train_bytes - 1) / context, test_windows};
}

}  // namespace

Dataset::Info TextSet::plan(std::int64_t length, std::string name, const TextOptions& options) {
  const Cut c = cut(length, name, options);
  const Meta window{Shape{options.context}, DType::i64};
  return {std::move(name), options.split == Split::train ? c.train_windows : c.test_windows, window, window, 256};
}

TextSet::TextSet(std::vector<std::byte> text, std::string name, const TextOptions& options)
    : Dataset(plan(static_cast<std::int64_t>(text.size()), std::move(name), options)),
      random_(options.split == Split::train),
      seed_(options.seed) {
  const Cut c = cut(static_cast<std::int64_t>(text.size()), this->name(), options);
  const auto middle = text.begin() + c.train_bytes;
  text_ = random_ ? std::vector<std::byte>(text.begin(), middle) : std::vector<std::byte>(middle, text.end());
}

void TextSet::read_example(const Example& example, std::span<std::byte> in, std::span<std::byte> label) const {
  const std::span<std::int64_t> inputs = elements<std::int64_t>(in);
  const std::span<std::int64_t> labels = elements<std::int64_t>(label);
  const std::size_t context = inputs.size();
  const std::size_t at =
      random_
          ? static_cast<std::size_t>(data_rng(seed_, DataStream::window).below(text_.size() - context, example.id, 0))
          : static_cast<std::size_t>(example.index) * context;
  for (std::size_t i = 0; i < context; ++i) {
    inputs[i] = std::to_integer<std::int64_t>(text_[at + i]);
    labels[i] = std::to_integer<std::int64_t>(text_[at + i + 1]);
  }
}

std::shared_ptr<const Dataset> open_text(const std::filesystem::path& path, const TextOptions& options) {
  // Unpacking holds the text twice while it grows, a split is a copy of its part.
  const auto most = static_cast<std::uint64_t>(available_memory() / 3);
  return std::make_shared<TextSet>(read_maybe_gzip(path, std::min(kMaxFileBytes, most)), path.native(), options);
}

}  // namespace lamina
