#include "lamina/core/io/idx.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/tests/io/allocation_watch.hpp"
#include "lamina/tests/io/gzip_maker.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using test::bytes_of;
using test::put;
using test::TempDir;

std::string idx(std::vector<std::uint32_t> dims, std::size_t bytes, char type = 0x08) {
  std::string out{'\0', '\0', type, static_cast<char>(dims.size())};
  for (const std::uint32_t d : dims) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(d >> shift);
  }
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(i);
  return out;
}

IdxArray parse(const std::string& text) { return IdxArray(bytes_of(text), "t.idx"); }

TEST(Idx, RanksOneToEight) {
  const IdxArray one = parse(idx({5}, 5));
  EXPECT_EQ(one.shape(), Shape{5});
  EXPECT_EQ(one.values()[4], 4);
  const IdxArray three = parse(idx({2, 3, 4}, 24));
  EXPECT_EQ(three.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(three.values().size(), 24u);
  EXPECT_EQ(three.values()[23], 23);
  EXPECT_EQ(parse(idx({1, 1, 1, 1, 1, 1, 1, 2}, 2)).shape().rank(), 8);
  EXPECT_EQ(parse(idx({0, 28, 28}, 0)).values().size(), 0u);
}

TEST(Idx, PlainAndGzipFiles) {
  const TempDir dir;
  put(dir / "plain", idx({3, 2}, 6));
  put(dir / "packed.gz", test::gzip(idx({3, 2}, 6)));
  EXPECT_EQ(read_idx(dir / "plain").shape(), (Shape{3, 2}));
  EXPECT_EQ(read_idx(dir / "packed.gz").values()[5], 5);
  const std::string gz = test::gzip(idx({3, 2}, 6));
  put(dir / "cut.gz", gz.substr(0, gz.size() - 5));
  LAMINA_EXPECT_ERROR(read_idx(dir / "cut.gz"), FormatError, "cut.gz' is cut short");
  LAMINA_EXPECT_ERROR(read_idx(dir / "absent"), IoError, "absent'");
}

TEST(Idx, DamagedFilesAreRefused) {
  const std::string good = idx({2, 3, 4}, 24);
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW((void)parse(good.substr(0, n)), FormatError) << n;
  }
  LAMINA_EXPECT_ERROR(parse(good + "x"), FormatError, "'t.idx' has 25 bytes of elements; (2,3,4) says 24");
  std::string swapped = good;
  std::swap(swapped[0], swapped[3]);  // the magic number read in the wrong byte order
  std::swap(swapped[1], swapped[2]);
  LAMINA_EXPECT_ERROR(parse(swapped), FormatError, "0x03080000");
  LAMINA_EXPECT_ERROR(parse(idx({}, 0)), FormatError, "0 dims");
  LAMINA_EXPECT_ERROR(parse(idx({1, 1, 1, 1, 1, 1, 1, 1, 1}, 1)), FormatError, "9 dims");
  LAMINA_EXPECT_ERROR(parse(idx({4}, 4, 0x0D)), DTypeError, "0x0d (32-bit float)");
  LAMINA_EXPECT_ERROR(parse(idx({4}, 4, 0x07)), FormatError, "no IDX magic number");
  LAMINA_EXPECT_ERROR(parse("{\"json\": 1}"), FormatError, "no IDX magic number");
}

TEST(Idx, ProductsThatOverflowAreRefusedWithoutAllocating) {
  const std::vector<std::vector<std::uint32_t>> cases = {
      {0xffffffff, 0xffffffff, 0xffffffff},
      {0x80000000, 0x80000000, 4},
      {0xffffffff, 0xffffffff, 0xffffffff, 0},
      {65536, 65536, 65536, 65536},  // 2^64: zero when it wraps
      {0xffffffff},
  };
  for (const auto& dims : cases) {
    const auto bytes = bytes_of(idx(dims, 0));
    const test::AllocationWatch watch;
    EXPECT_THROW(IdxArray(bytes, "t"), FormatError);
    EXPECT_LT(watch.largest(), 4096u);
  }
}

TEST(Idx, EveryByteOfTheHeaderDamaged) {
  const std::string good = idx({2, 3, 4}, 24);
  for (std::size_t i = 0; i < 16; ++i) {
    for (const int value : {0, 1, 0x7F, 0x80, 0xFF}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      if (bad == good) continue;
      try {
        (void)parse(bad);
        ADD_FAILURE() << "byte " << i << " = " << value;
      } catch (const Error&) {
      }
    }
  }
}

}  // namespace
}  // namespace lamina
