#include "lamina/core/io/atomic_file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using test::bytes_of;
using test::get;
using test::put;
using test::TempDir;

// Runs `body` in a child process; its exit code is 0 if body returned true.
int in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    bool good = false;
    try {
      good = body();
    } catch (...) {
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(AtomicFile, ReplacesAtCommitOnly) {
  const TempDir dir;
  put(dir / "f", "old");
  {
    AtomicFile file(dir / "f");
    file.write("new ");
    file.write("contents");
    EXPECT_EQ(get(dir / "f"), "old");
    EXPECT_EQ(file.commit(), (WrittenFile{12, hash_bytes(bytes_of("new contents"))}));
    EXPECT_EQ(get(dir / "f"), "new contents");
    LAMINA_EXPECT_ERROR(file.write("more"), IoError, "was committed");
    LAMINA_EXPECT_ERROR(file.commit(), IoError, "was committed");
  }
  EXPECT_EQ(dir.names(), std::vector<std::string>{"f"});
}

TEST(AtomicFile, WithoutCommitNothingHappens) {
  const TempDir dir;
  put(dir / "f", "old");
  {
    AtomicFile file(dir / "f");
    file.write(std::string(200'000, 'x'));
    EXPECT_EQ(dir.names().size(), 2u);
  }
  EXPECT_EQ(get(dir / "f"), "old");
  EXPECT_EQ(dir.names(), std::vector<std::string>{"f"});
}

TEST(AtomicFile, HashesAllSizesOfWrites) {
  const TempDir dir;
  std::string text;
  AtomicFile file(dir / "f", {.sync = false});
  for (std::size_t n : {0u, 1u, 65535u, 65536u, 65537u, 3u, 200000u, 7u}) {
    const std::string part(n, static_cast<char>('a' + n % 26));
    file.write(part);
    text += part;
  }
  const WrittenFile written = file.commit();
  EXPECT_EQ(get(dir / "f"), text);
  EXPECT_EQ(written, (WrittenFile{text.size(), hash_file(dir / "f")}));
}

TEST(AtomicFile, KeepsPermissionsAndTakesTheLongestName) {
  const TempDir dir;
  put(dir / "secret", "old");
  ASSERT_EQ(::chmod((dir / "secret").c_str(), 0600), 0);
  write_file(dir / "secret", "new");
  struct stat status {};
  ASSERT_EQ(::stat((dir / "secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  write_file(dir / std::string(255, 'n'), "long");
  EXPECT_EQ(get(dir / std::string(255, 'n')), "long");
}

TEST(AtomicFile, PlacesThatCannotBeWritten) {
  const TempDir dir;
  LAMINA_EXPECT_ERROR(write_file(dir / "no" / "f", "x"), IoError, "cannot create");
  LAMINA_EXPECT_ERROR(write_file(dir.path(), "x"), IoError, "Is a directory");
  LAMINA_EXPECT_ERROR(write_file(dir.path() / "", "x"), IoError, "Is a directory");
  LAMINA_EXPECT_ERROR(write_file(std::string("a\0b", 3), "x"), IoError, "Invalid argument");
  LAMINA_EXPECT_ERROR(write_file("/proc/lamina", "x"), IoError, "cannot create '/proc/lamina'");
}

TEST(AtomicFile, ReadOnlyFolder) {
  const TempDir dir;
  put(dir / "f", "old");
  ASSERT_EQ(::chmod(dir.path().c_str(), 0555), 0);
  const int status = in_child([&] {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return false;
    try {
      write_file(dir / "f", "new");
    } catch (const IoError& error) {
      return std::string_view(error.what()).find("f': Permission denied") != std::string_view::npos;
    }
    return false;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get(dir / "f"), "old");
}

// A write that fails half-way: the message is about the file, the old one stays, the temporary goes.
bool fails_cleanly(const std::filesystem::path& folder, std::string_view reason) {
  const std::string big(std::size_t{4} << 20, 'x');
  try {
    write_file(folder / "f", big);
    return false;
  } catch (const IoError& error) {
    const std::string_view text = error.what();
    if (text.find("f': ") == std::string_view::npos || text.find(reason) == std::string_view::npos) return false;
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files += entry.is_regular_file() ? 1 : 0;
  return files == 1 && get(folder / "f") == "old";
}

TEST(AtomicFile, FileSizeLimit) {
  const TempDir dir;
  put(dir / "f", "old");
  EXPECT_EQ(in_child([&] {
              ::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1 << 20, 1 << 20};
              return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && fails_cleanly(dir.path(), "File too large");
            }),
            0);
}

TEST(AtomicFile, FullDisk) {
  const TempDir dir;
  if (::mount("tmpfs", dir.path().c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "cannot mount a small tmpfs here; the file size limit test covers short writes";
  }
  put(dir / "f", "old");
  const bool clean = fails_cleanly(dir.path(), "No space left on device");
  if (clean) write_file(dir / "f", "fits");
  const std::string after = get(dir / "f");
  ::umount(dir.path().c_str());
  EXPECT_TRUE(clean);
  EXPECT_EQ(after, "fits");
}

TEST(AtomicFile, TidiesUpAfterTheDeadButNotAfterTheLiving) {
  const TempDir dir;
  put(dir / ".f.0123abcd.tmp", "of a writer that was killed");
  put(dir / ".f.notahex1.tmp", "not ours");
  put(dir / ".g.0123abcd.tmp", "another target's");
  AtomicFile living(dir / "f");
  living.write("living");
  write_file(dir / "f", "second");
  EXPECT_FALSE(std::filesystem::exists(dir / ".f.0123abcd.tmp"));
  EXPECT_TRUE(std::filesystem::exists(dir / ".f.notahex1.tmp"));
  EXPECT_TRUE(std::filesystem::exists(dir / ".g.0123abcd.tmp"));
  EXPECT_EQ(get(dir / "f"), "second");
  living.commit();
  EXPECT_EQ(get(dir / "f"), "living");
}

// pains 3.25: whenever the writer is killed, the file is one of the states that were written, whole.
TEST(AtomicFile, KilledAtRandomPoints) {
  const TempDir dir;
  const auto contents = [](std::uint64_t version) {
    std::string text(100'000 + version % 7 * 1000, '\0');
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(version + i);
    return text;
  };
  write_file(dir / "f", contents(0));
  std::uint64_t highest = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        for (std::uint64_t version = highest + 1;; ++version) write_file(dir / "f", contents(version));
      } catch (...) {
      }
      ::_exit(1);
    }
    ::usleep(static_cast<useconds_t>(Rng(7).below(6000, static_cast<std::uint64_t>(round), 0)));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const std::string found = get(dir / "f");
    ASSERT_FALSE(found.empty());
    // Version v begins with the byte v mod 256; no round comes as far as 256.
    std::uint64_t version = highest;
    while (static_cast<char>(version) != found[0]) ++version;
    ASSERT_LE(version, highest + 200);
    ASSERT_TRUE(found == contents(version)) << "round " << round;
    highest = version;
  }
  write_file(dir / "f", "end");
  EXPECT_EQ(dir.names(), std::vector<std::string>{"f"}) << "temporaries of the dead are tidied up";
}

}  // namespace
}  // namespace lamina
