// safetensors: named tensors in one file, data only. 8 bytes of header length (little-endian), a JSON header
// {"name": {"dtype", "shape", "data_offsets"}, ..., "__metadata__": {string: string}}, then the tensors' bytes.
//
// Everything is validated once, when a file is opened: the header's size and structure (any key twice, any unknown
// field and any number that is not a plain integer below 2^53 is refused), the shapes against the offsets, the offsets
// against the file, with neither hole nor overlap. Elements are read when asked for, so that files larger than memory
// can be inspected. Nothing is allocated from a number that was not checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/core/dtype.hpp"
#include "lamina/core/io/atomic_file.hpp"
#include "lamina/core/shape.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina {

using SafetensorsMetadata = std::map<std::string, std::string>;

/// A file of safetensors, open for reading. Copies share the open file; const members are thread-safe.
class SafetensorsFile {
 public:
  struct Entry {
    std::string name;
    std::string type;            ///< as the file names it: "F32", "F8_E4M3", ...
    std::optional<DType> dtype;  ///< absent where the engine has no such type; listing such a tensor is fine
    Shape shape;
    std::uint64_t offset = 0;  ///< of the first byte, from the beginning of the file
    std::uint64_t bytes = 0;
  };

  /// Reads and validates the header. Throws IoError; FormatError for whatever the format does not allow, a header of
  /// more than 100,000,000 bytes (the format's own bound), and a tensor of more than 8 dims.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same of a file in memory; `name` is for messages.
  static SafetensorsFile parse(std::vector<std::byte> file, std::string name);

  /// In the order of their bytes.
  std::span<const Entry> entries() const noexcept;
  const SafetensorsMetadata& metadata() const noexcept;
  /// The name given, or the path: what messages call the file.
  const std::string& name() const noexcept;

  /// Null when there is none of that name.
  const Entry* find(std::string_view name) const;
  /// Throws ValueError when there is none of that name.
  const Entry& at(std::string_view name) const;

  /// The bytes as they are in the file: row-major, little-endian. Throws IoError, ShapeError unless `out` has
  /// entry.bytes bytes.
  void read(const Entry& entry, std::span<std::byte> out) const;
  std::vector<std::byte> read(const Entry& entry) const;

  /// The tensor on a device. Throws ValueError for an unknown name, DTypeError for a type the engine lacks,
  /// FormatError for a bool that is neither 0 nor 1, IoError, OutOfMemory.
  Tensor tensor(std::string_view name, const Device& device) const;

 private:
  struct State;
  explicit SafetensorsFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// A tensor to be written, as bytes: row-major in the host's byte order.
struct SafetensorsItem {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// A tensor to be written. Any device and layout; elements pass through the host one tensor at a time.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Writes a file atomically. Tensors are ordered by element size (largest first, so that each is aligned), then by
/// name: the same contents give the same bytes. The header is padded with spaces to a multiple of 8.
/// Throws IoError; ValueError for a name or text that is given twice, reserved or not UTF-8; ShapeError for bytes that
/// are not those of their shape. Returns size and hash of the file.
WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                              const SafetensorsMetadata& metadata = {});
WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata = {});

}  // namespace lamina
