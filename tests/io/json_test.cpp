#include "lamina/core/io/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using nlohmann::json;
using test::get;
using test::put;
using test::TempDir;

TEST(Json, Parses) {
  const json value = parse_json(R"( {"a": [1, -2, 3.5], "b": {"a": null, "c": "é"}} )", "t");
  EXPECT_EQ(value["a"][1], -2);
  EXPECT_EQ(value["b"]["c"], "é");
  EXPECT_EQ(parse_json("3", "t"), 3);
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const std::string_view text :
       {"", "{", "{} x", "[1,]", "nul", "'a'", "{\"a\" 1}", "\"\xff\"", "[1] [2]", "// c\n1", "\xef\xbb\xbf"}) {
    EXPECT_THROW((void)parse_json(text, "t"), FormatError) << text;
  }
  LAMINA_EXPECT_ERROR(parse_json("[1, x]", "cfg.json"), FormatError,
                      "json: 'cfg.json' is not JSON: syntax error at byte 5");
  LAMINA_EXPECT_ERROR(parse_json(std::string_view("1\0 2", 4), "t"), FormatError, "NUL");
  LAMINA_EXPECT_ERROR(parse_json("[1e999]", "t"), FormatError, "'t'");
}

TEST(Json, KeysTwice) {
  LAMINA_EXPECT_ERROR(parse_json(R"({"a": 1, "b": 2, "a": 3})", "t"), FormatError, "key 'a' twice");
  LAMINA_EXPECT_ERROR(parse_json(R"({"o": [{"k": {}, "\u006b": 1}]})", "t"), FormatError, "key 'k' twice");
  EXPECT_NO_THROW((void)parse_json(R"([{"a": {"a": 1}}, {"a": 2}])", "t"));
}

TEST(Json, Limits) {
  EXPECT_NO_THROW((void)parse_json("[[[]]]", "t", {.depth = 3}));
  LAMINA_EXPECT_ERROR(parse_json("[[[]]]", "t", {.depth = 2}), FormatError, "more than 2 deep");
  LAMINA_EXPECT_ERROR(parse_json("{\"a\":{\"a\":{}}}", "t", {.depth = 2}), FormatError, "more than 2 deep");
  EXPECT_THROW((void)parse_json(std::string(1'000'000, '['), "t"), FormatError);
  LAMINA_EXPECT_ERROR(parse_json("[1234567]", "t", {.bytes = 8}), FormatError, "9 bytes; at most 8");
  const TempDir dir;
  put(dir / "f", "[1234567]");
  EXPECT_EQ(read_json(dir / "f")[0], 1234567);
  LAMINA_EXPECT_ERROR(read_json(dir / "f", {.bytes = 8}), FormatError, "f' has 9 bytes");
}

TEST(JsonLines, WritesAtOnce) {
  const TempDir dir;
  JsonLines lines(dir / "m.jsonl");
  lines.write({{"step", 1}, {"loss", std::nan("")}});
  EXPECT_EQ(get(dir / "m.jsonl"), "{\"loss\":null,\"step\":1}\n");
  lines.write(json("a\nb\xff"));
  EXPECT_EQ(get(dir / "m.jsonl"), "{\"loss\":null,\"step\":1}\n\"a\\nb\xef\xbf\xbd\"\n");
}

TEST(JsonLines, AppendsAndEndsATornLine) {
  const TempDir dir;
  put(dir / "m", "{\"step\":1}\n{\"st");
  JsonLines(dir / "m", JsonLines::Mode::append).write({{"step", 2}});
  EXPECT_EQ(get(dir / "m"), "{\"step\":1}\n{\"st\n{\"step\":2}\n");
  JsonLines(dir / "m", JsonLines::Mode::append).write(3);
  EXPECT_EQ(get(dir / "m"), "{\"step\":1}\n{\"st\n{\"step\":2}\n3\n");
  JsonLines(dir / "m").write(4);
  EXPECT_EQ(get(dir / "m"), "4\n");
}

TEST(JsonLines, LinesOfThreadsDoNotMix) {
  const TempDir dir;
  {
    JsonLines lines(dir / "m");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&lines, t] {
        for (int i = 0; i < 100; ++i) lines.write({{"t", t}, {"i", i}, {"pad", std::string(300, 'x')}});
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::istringstream in(get(dir / "m"));
  std::vector<int> next(4, 0);
  int count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const json value = parse_json(line, "line");
    EXPECT_EQ(value["i"], next[value["t"].get<std::size_t>()]++);
  }
  EXPECT_EQ(count, 400);
}

TEST(JsonLines, Errors) {
  const TempDir dir;
  LAMINA_EXPECT_ERROR(JsonLines(dir / "no" / "m"), IoError, "cannot create");
  if (std::filesystem::exists("/dev/full")) {
    JsonLines lines("/dev/full");
    LAMINA_EXPECT_ERROR(lines.write(1), IoError, "No space left on device");
  }
}

}  // namespace
}  // namespace lamina
