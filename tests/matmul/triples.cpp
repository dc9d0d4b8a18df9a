// Every size around the edges of the blocks: wrong results at sizes that no block divides are the classic fault of
// matrix products (100 wrong where 1000 is right, a dropped tail of K). Operands are windows of larger matrices full of
// NaN.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/matmul/op.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {
namespace {

constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129};

// Values that are sums of few powers of two: products and sums of them are exact in f32, so the comparison is of bits.
float value(std::int64_t i) { return static_cast<float>(i * 7919 % 31 - 15) / 8; }

// A (rows, columns) window, off the corner, of a matrix of NaN.
struct Window {
  Tensor whole, view;
  std::vector<float> values;
};
Window window(const Device& device, std::int64_t rows, std::int64_t columns, std::int64_t seed) {
  const std::int64_t pitch = columns + 3;
  std::vector<float> all(static_cast<std::size_t>((rows + 2) * pitch), std::numeric_limits<float>::quiet_NaN());
  Window w;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      w.values.push_back(value(seed + i * columns + j));
      all[static_cast<std::size_t>((i + 1) * pitch + j + 1)] = w.values.back();
    }
  }
  w.whole = Tensor::from(device, {rows + 2, pitch}, all);
  w.view = w.whole.slice(0, 1, rows + 1).slice(1, 1, columns + 1);
  return w;
}

// The number of wrong elements.
int check(const Device& device, const Variant& variant, std::int64_t m, std::int64_t n, std::int64_t k,
          Matmul::Attrs attrs) {
  const Window a = window(device, attrs.transpose_a ? k : m, attrs.transpose_a ? m : k, m + 5);
  const Window b = window(device, attrs.transpose_b ? n : k, attrs.transpose_b ? k : n, n + 11);
  const Tensor* in[] = {&a.view, &b.view};
  const Tensor c = run_variant(record_of<Matmul>, variant, &attrs, in)[0];
  const auto got = host<float>(c);
  std::vector<double> want(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t x = 0; x < k; ++x) {
      const double left = a.values[static_cast<std::size_t>(attrs.transpose_a ? x * m + i : i * k + x)];
      for (std::int64_t j = 0; j < n; ++j) {
        want[static_cast<std::size_t>(i * n + j)] +=
            left * b.values[static_cast<std::size_t>(attrs.transpose_b ? j * k + x : x * n + j)];
      }
    }
  }
  int wrong = 0;
  for (std::size_t i = 0; i < want.size(); ++i) wrong += static_cast<double>(got[i]) == want[i] ? 0 : 1;
  return wrong;
}

bool long_run() {
  const char* text = std::getenv("LAMINA_LONG");
  return text != nullptr && *text != 0 && *text != '0';
}

class Triples : public ::testing::TestWithParam<const char*> {};

TEST_P(Triples, RightToTheBit) {
  const Device device = cpu_device({.threads = 2, .poison_memory = true});
  const Variant* variant = nullptr;
  const KernelTable::Entry& entry = device.state()->kernels->entry(OpId<Matmul>::value);
  for (const Variant* v : entry.all) {
    if (v->name == GetParam()) variant = v;
  }
  ASSERT_NE(variant, nullptr);
  const bool runs = std::find(entry.usable.begin(), entry.usable.end(), variant) != entry.usable.end();
  if (!runs && variant->isa != Isa::wide) GTEST_SKIP() << "this machine has no " << name_of(variant->isa);
  const bool rows = variant->name.find(".rows.") != std::string_view::npos;
  // All triples of sizes; by default a fixed 1 in 40 of them, spread so that every pair of sizes meets.
  std::int64_t number = 0;
  for (const std::int64_t m : kSizes) {
    for (const std::int64_t n : kSizes) {
      for (const std::int64_t k : kSizes) {
        if (rows && m != 1 && n != 1) continue;
        ++number;
        if (!rows && !long_run() && number * 2654435761 % 4294967296 > 4294967296 / 40) continue;
        for (const Matmul::Attrs attrs : {Matmul::Attrs{}, {false, true}, {true, false}, {true, true}}) {
          ASSERT_EQ(check(device, *variant, m, n, k, attrs), 0)
              << m << " x " << n << " x " << k << (attrs.transpose_a ? " T" : " N") << (attrs.transpose_b ? "T" : "N");
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Triples,
                         ::testing::Values("matmul.cpu.packed.f32.avx512", "matmul.cpu.packed.f32.avx2",
                                           "matmul.cpu.packed.f32.baseline", "matmul.cpu.packed.f32.wide",
                                           "matmul.cpu.rows.f32.avx512", "matmul.cpu.rows.f32.avx2",
                                           "matmul.cpu.rows.f32.baseline", "matmul.cpu.rows.f32.wide"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '.' ? '_' : c;
                           return name;
                         });

TEST(Matmul, RowsDoNotDependOnOtherRows) {
  // What makes a batch equal to its micro-batches: also where K takes several passes and B several chunks.
  const Device device = cpu_device({.threads = 2});
  const Window a = window(device, 300, 700, 1), b = window(device, 700, 130, 2);
  Tensor scaled = Tensor::zeros(device, {300, 700});
  const auto values = host_mut<float>(scaled);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = a.values[i] * 0.37f;  // sums now round
  const auto all = to_vector<float>(matmul(scaled, b.view));
  for (const auto& [lo, hi] : {std::pair{0, 2}, {7, 40}, {123, 300}}) {
    const auto some = to_vector<float>(matmul(scaled.slice(0, lo, hi), b.view));
    for (std::size_t i = 0; i < some.size(); ++i) ASSERT_EQ(some[i], all[static_cast<std::size_t>(lo) * 130 + i]);
  }
}

TEST(Matmul, ThreadsDoNotMatter) {
  std::vector<std::vector<float>> results;
  for (const int threads : {1, 2, 5}) {
    const Device device = cpu_device({.threads = threads});
    std::vector<float> values(210 * 600);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(static_cast<std::int64_t>(i)) * 0.37f;
    const Tensor a = Tensor::from(device, {210, 600}, values);
    results.push_back(to_vector<float>(matmul(a, a, {.transpose_b = true})));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace lamina
