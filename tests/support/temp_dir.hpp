// A folder that exists for the length of a test, and small helpers on files in it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::test {

class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lamina-test-XXXXXX").native();
    if (::mkdtemp(pattern.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code error;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, error);
    std::filesystem::remove_all(path_, error);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  /// Names in the folder, in no order.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) out.push_back(entry.path().filename());
    return out;
  }

 private:
  std::filesystem::path path_;
};

inline void put(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.flush()) ADD_FAILURE() << "cannot write " << path;
}

inline std::string get(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

/// Expects `statement` to throw Error with a message that contains `part`.
#define LAMINA_EXPECT_ERROR(statement, Error, part)                                                    \
  do {                                                                                                 \
    try {                                                                                              \
      (void)(statement);                                                                               \
      ADD_FAILURE() << #statement " throws nothing";                                                   \
    } catch (const Error& error) {                                                                     \
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos) << error.what();    \
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos) << "one line only"; \
    }                                                                                                  \
  } while (false)

}  // namespace lamina::test
