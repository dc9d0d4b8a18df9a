#include "lamina/core/io/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/tests/io/allocation_watch.hpp"
#include "lamina/tests/io/gzip_maker.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using test::bytes_of;
using test::gzip;
using test::put;
using test::TempDir;

TEST(ReadFile, WholeAndRange) {
  const TempDir dir;
  put(dir / "f", "hello world");
  EXPECT_EQ(read_file(dir / "f"), bytes_of("hello world"));
  EXPECT_EQ(read_file_range(dir / "f", 6, 5), bytes_of("world"));
  EXPECT_EQ(read_file_range(dir / "f", 11, 0), bytes_of(""));
  put(dir / "empty", "");
  EXPECT_TRUE(read_file(dir / "empty").empty());
  LAMINA_EXPECT_ERROR(read_file(dir / "f", 10), FormatError, "11 bytes; at most 10");
}

TEST(ReadFile, RangesBeyondTheFileAllocateNothing) {
  const TempDir dir;
  put(dir / "f", "hello world");
  const test::AllocationWatch watch;
  LAMINA_EXPECT_ERROR(read_file_range(dir / "f", 6, 6), IoError, "6 bytes from 6");
  LAMINA_EXPECT_ERROR(read_file_range(dir / "f", 12, 0), IoError, "12");
  LAMINA_EXPECT_ERROR(read_file_range(dir / "f", 1, ~std::uint64_t{0}), IoError, "'");
  LAMINA_EXPECT_ERROR(read_file_range(dir / "f", ~std::uint64_t{0}, 2), IoError, "'");
  EXPECT_LT(watch.largest(), 4096u);
}

TEST(ReadFile, ErrorsNameThePathAndTheReason) {
  const TempDir dir;
  LAMINA_EXPECT_ERROR(read_file(dir / "absent"), IoError, "absent': No such file or directory");
  LAMINA_EXPECT_ERROR(read_file(dir.path()), IoError, "Is a directory");
  LAMINA_EXPECT_ERROR(read_file(dir / "f" / "g"), IoError, "No such file");
  LAMINA_EXPECT_ERROR(read_file(dir / std::string(300, 'n')), IoError, "too long");
  LAMINA_EXPECT_ERROR(read_file(std::string("/etc/passwd\0.txt", 16)), IoError, "\\x00");
  LAMINA_EXPECT_ERROR(read_file("/dev/null"), IoError, "not a regular file");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  LAMINA_EXPECT_ERROR(read_file(dir / "pipe"), IoError, "not a regular file");  // and does not hang
}

TEST(ReadFile, AFileThatShrankIsAnError) {
  const TempDir dir;
  put(dir / "f", "0123456789");
  const ReadFile file(dir / "f");
  put(dir / "f", "01234");
  std::byte out[10];
  LAMINA_EXPECT_ERROR(file.read_at(0, out), IoError, "ends at byte 5, 5 more were expected");
}

TEST(Gzip, ReadsThroughAndPassesPlainFiles) {
  const TempDir dir;
  std::string text;
  for (std::uint64_t i = 0; i < 200000; ++i) text += static_cast<char>(i * i % 251);
  put(dir / "a.gz", gzip(text));
  put(dir / "plain.gz", text);
  put(dir / "one", "\x1f");
  put(dir / "none.gz", gzip(""));
  put(dir / "two.gz", gzip("first ") + gzip("second"));
  EXPECT_EQ(read_maybe_gzip(dir / "a.gz"), bytes_of(text));
  EXPECT_EQ(read_maybe_gzip(dir / "plain.gz"), bytes_of(text));
  EXPECT_EQ(read_maybe_gzip(dir / "one"), bytes_of("\x1f"));
  EXPECT_TRUE(read_maybe_gzip(dir / "none.gz").empty());
  EXPECT_EQ(read_maybe_gzip(dir / "two.gz"), bytes_of("first second"));
  EXPECT_EQ(read_maybe_gzip(dir / "a.gz", text.size()), bytes_of(text));
  LAMINA_EXPECT_ERROR(read_maybe_gzip(dir / "a.gz", text.size() - 1), FormatError, "more than the 199999 bytes");
  EXPECT_EQ(gunzip(bytes_of(gzip(text)), "memory"), bytes_of(text));
}

TEST(Gzip, CutAtEveryByte) {
  const std::string whole = gzip("a text that is long enough to have a block, a text that repeats, a text");
  for (std::size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THROW((void)gunzip(bytes_of(whole.substr(0, n)), "cut"), FormatError) << n;
  }
  const TempDir dir;
  put(dir / "cut.gz", whole.substr(0, whole.size() - 1));
  LAMINA_EXPECT_ERROR(read_maybe_gzip(dir / "cut.gz"), FormatError, "cut.gz' is cut short");
}

TEST(Gzip, FlippedBytesAndTrailingData) {
  const std::string text(5000, 'x');
  const std::string whole = gzip(text);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    try {
      // Header fields without a meaning for the contents (time, system, extra flags) may change unnoticed.
      EXPECT_EQ(gunzip(bytes_of(bad), "flip", 1 << 20), bytes_of(text)) << i;
    } catch (const FormatError&) {
    }
  }
  LAMINA_EXPECT_ERROR(gunzip(bytes_of(whole + "x"), "t"), FormatError, "after the end");
  LAMINA_EXPECT_ERROR(gunzip(bytes_of(whole + '\0'), "t"), FormatError, "after the end");
  LAMINA_EXPECT_ERROR(gunzip(bytes_of(whole + "\x1f"), "t"), FormatError, "cut short");
  std::string wrong_sum = whole;
  wrong_sum[whole.size() - 8] ^= 1;
  LAMINA_EXPECT_ERROR(gunzip(bytes_of(wrong_sum), "t"), FormatError, "incorrect data check");
}

TEST(Gzip, ABombStopsAtTheBound) {
  std::string bomb = gzip(std::string(std::size_t{64} << 20, '\0'));
  ASSERT_LT(bomb.size(), std::size_t{1} << 17);
  const auto bytes = bytes_of(bomb);
  const test::AllocationWatch watch;
  LAMINA_EXPECT_ERROR(gunzip(bytes, "bomb", 1 << 20), FormatError, "more than the 1048576 bytes");
  EXPECT_LE(watch.largest(), (std::size_t{1} << 20) + 1);
}

TEST(Gzip, TheClaimedSizeIsOnlyAHint) {
  std::string lies = gzip("short");
  lies.replace(lies.size() - 4, 4, "\xff\xff\xff\xff");
  const auto bytes = bytes_of(lies);
  const test::AllocationWatch watch;
  LAMINA_EXPECT_ERROR(gunzip(bytes, "lies"), FormatError, "incorrect length check");
  EXPECT_LE(watch.largest(), 1032 * lies.size() + 1);
}

TEST(Hash, IsXxh3AndTheSameInPieces) {
  EXPECT_EQ(hash_bytes({}), 0x2d06800538d394c2u);  // the published value of the empty input, seed 0
  const TempDir dir;
  std::string text(1'000'003, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(mix64(i));
  put(dir / "f", text);
  EXPECT_EQ(hash_file(dir / "f"), hash_bytes(bytes_of(text)));
  text[999'999] ^= 1;
  EXPECT_NE(hash_file(dir / "f"), hash_bytes(bytes_of(text)));
}

TEST(Quote, IsSafeForATerminal) {
  EXPECT_EQ(quote("a\x1b[2J\n\x7f"), "'a\\x1b[2J\\x0a\\x7f'");
  EXPECT_EQ(quote("\xc3\xa9"), "'\xc3\xa9'");
  const std::string long_name = std::string(159, 'a') + "\xc3\xa9" + std::string(1000, 'b') + std::string(200, 'c');
  const std::string cut = quote(long_name);
  EXPECT_LT(cut.size(), 340u);
  EXPECT_EQ(cut.find(std::string(159, 'a') + "..."), 1u);  // the two bytes of the letter stay together
}

}  // namespace
}  // namespace lamina
