#include "lamina/tools/table.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace lamina::tools {
namespace {

TEST(Human, Numbers) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.50 KiB");
  EXPECT_EQ(human_bytes(1024.0 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(human_bytes(345.0 * (1 << 30)), "345 GiB");
  EXPECT_EQ(human_count(9999), "9999");
  EXPECT_EQ(human_count(12345), "12.3k");
  EXPECT_EQ(human_count(999999), "1.00M");
  EXPECT_EQ(human_count(-2.5e9), "-2.50G");
  EXPECT_EQ(human_flops(9876543210123), "9.88 TFLOP");
  EXPECT_EQ(human_flops(12), "12 FLOP");
  EXPECT_EQ(human_bytes(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(human_count(1e300).size() < 12, true);
}

TEST(Human, Seconds) {
  EXPECT_EQ(human_seconds(0), "0 s");
  EXPECT_EQ(human_seconds(8.5e-7), "850 ns");
  EXPECT_EQ(human_seconds(1.234e-5), "12.3 us");
  EXPECT_EQ(human_seconds(0.00456), "4.56 ms");
  EXPECT_EQ(human_seconds(0.99996), "1.00 s");
  EXPECT_EQ(human_seconds(7.891), "7.89 s");
  EXPECT_EQ(human_seconds(125), "2m 05s");
  EXPECT_EQ(human_seconds(3599.7), "1h 00m");
  EXPECT_EQ(human_seconds(3720), "1h 02m");
  EXPECT_EQ(human_seconds(3 * 86400 + 4 * 3600), "3d 04h");
  EXPECT_EQ(human_seconds(-2), "-2.00 s");
  EXPECT_EQ(human_seconds(std::numeric_limits<double>::infinity()), "-");
}

TEST(Table, AlignsNumbersRightAndTextLeft) {
  Table table({"model", "loss", "time"});
  table.add({"mlp", "0.25", "1.2 s"});
  table.add({"transformer é", "12.5", "-"});
  EXPECT_EQ(table.to_text(),
            "model          loss   time\n"
            "--------------------------\n"
            "mlp            0.25  1.2 s\n"
            "transformer é  12.5      -\n");
}

TEST(Table, TakesRaggedAndEmptyRows) {
  Table table;
  EXPECT_EQ(table.to_text(), "");
  table.add({"a"});
  table.add({"b", "2", "c"});
  table.add({});
  EXPECT_EQ(table.to_text(), "a\nb  2  c\n\n");
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("é✓"), 2u);
  EXPECT_EQ(display_width("e\xcc\x81"), 1u);
  EXPECT_EQ(display_width("\xff\xff"), 2u);
}

}  // namespace
}  // namespace lamina::tools
