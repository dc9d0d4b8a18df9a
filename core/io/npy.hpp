// The .npy format of NumPy, versions 1.0, 2.0 and 3.0.
//
// Read: bool, integers and floats of either byte order, in C or Fortran order. What the engine has no type for but can
// hold without loss is widened: i1, i2, u2 to i32; u4 to i64; u8 (64 bits) to i64 if every value fits. Complex,
// strings, times, raw and structured types, long double, and above all object arrays (pickled programs) are refused by
// the header alone, before anything is allocated for the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "lamina/core/dtype.hpp"
#include "lamina/core/io/atomic_file.hpp"
#include "lamina/core/shape.hpp"
#include "lamina/core/tensor.hpp"

namespace lamina {

/// Elements in row-major order and the host's byte order. A value.
struct NpyArray {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> data;
};

/// A file's contents in memory; `name` is for messages. Throws FormatError for anything that is not exactly one array
/// (also one byte more or less), DTypeError for an element type that is refused. Pure; thread-safe.
NpyArray parse_npy(std::span<const std::byte> file, std::string_view name);

/// The array in a file. Throws IoError and as parse_npy.
NpyArray read_npy(const std::filesystem::path& path);

/// Writes an array atomically; `data` is row-major in the host's byte order. `version` is 1 or 2. Throws IoError;
/// DTypeError for bf16, which the format lacks; ShapeError when the bytes are not those of the shape.
WrittenFile write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape,
                      std::span<const std::byte> data, int version = 1);

/// The same from and to tensors; the device may be any, its elements pass through the host.
Tensor load_npy(const std::filesystem::path& path, const Device& device);
WrittenFile save_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace lamina
