// Transposes of matrices beyond the cache, which the samples of the op are too small to reach.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lamina/kernels/copy/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/permute/op.hpp"

namespace lamina {
namespace {

template <class T>
void check(const Device& device, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  const Shape shape{batch, rows, columns};
  std::vector<T> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(i * 2654435761u);
  const Tensor y = permute(Tensor::from<T>(device, shape, values), {0, 2, 1});
  const auto have = host<T>(y);
  std::size_t wrong = 0, at = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i, ++at) {
        wrong += have[at] == values[static_cast<std::size_t>((b * rows + i) * columns + j)] ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << sizeof(T) << " bytes, " << to_string(shape);
}

TEST(Transpose, LargeMatrices) {
  for (const int threads : {1, 2}) {
    const Device device = cpu_device({.threads = threads, .poison_memory = true});
    for (const std::int64_t rows : {1024, 1531}) {
      for (const std::int64_t columns : {2048, 2111}) {
        check<std::uint8_t>(device, 3, rows, columns);
        check<std::int32_t>(device, 1, rows, columns);
        check<std::int64_t>(device, 1, rows, columns);
      }
    }
    check<std::int32_t>(device, 40, 257, 258);  // large together
    check<std::int32_t>(device, 1, 31, 5000);
    check<std::int32_t>(device, 1, 5000, 33);
  }
}

TEST(Transpose, LargeMatricesOfHalves) {
  const Device device = cpu_device({.threads = 2, .poison_memory = true});
  for (const std::int64_t rows : {2048, 2111}) {
    const Shape shape{rows, 2560};
    std::vector<float> values(static_cast<std::size_t>(shape.count()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 2654435761u % 2048);
    const Tensor x = Tensor::from(device, shape, values);
    const Tensor y = cast(permute(cast(x, DType::f16), {1, 0}), DType::f32), want = permute(x, {1, 0});
    const auto a = host<float>(y), b = host<float>(want);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
  }
}

}  // namespace
}  // namespace lamina
