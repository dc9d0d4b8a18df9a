// The ring of shared memory alone: what fits, and what a broken other side may do to it.
#include "lamina/dist/comm/transport/ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "lamina/core/error.hpp"
#include "tests/comm/traffic.hpp"

namespace lamina::comm {
namespace {

struct TestRing {
  explicit TestRing(std::size_t size)
      : bytes(static_cast<std::byte*>(std::aligned_alloc(64, size)), &std::free),
        writer(state, bytes.get(), size, 1),
        reader(state, bytes.get(), size, 0) {
    std::memset(bytes.get(), 0, size);
  }
  RingState state{};
  std::unique_ptr<std::byte, decltype(&std::free)> bytes;
  RingWriter writer;
  RingReader reader;
};

TEST(Ring, CarriesEverySizeThroughEveryPosition) {
  TestRing ring(1024);
  for (int k = 0; k < 3000; ++k) {
    const std::int64_t bytes = k % 701;
    TestMessage message(0, 1, k, bytes, 1 + k % 3);
    TestSink sink(bytes, static_cast<TestSink::Way>(k % 3), k);
    bool sent = false, received = false;
    for (int turns = 0; !received; ++turns) {
      ASSERT_LT(turns, 100) << bytes;
      while (!sent && ring.writer.put(message.outgoing)) sent = message.outgoing.left() == 0;
      while (!received && ring.reader.front() != nullptr) {
        const auto pulled = ring.reader.pull(sink);
        received = pulled == RingReader::Pulled::message;
        if (pulled == RingReader::Pulled::nothing) break;
      }
    }
    ASSERT_TRUE(sent && sink.is_right(0, 1, k)) << bytes;
  }
}

TEST(Ring, RefusesAReaderThatSaysItReadMoreOrLess) {
  for (const std::uint64_t taken : {64ull, ~0ull, 63ull, 1ull << 40}) {
    TestRing ring(1024);
    TestMessage message(0, 1, 0, 5000, 1);
    while (ring.writer.put(message.outgoing)) {
    }
    ring.state.taken = taken == 64 ? 1024 + 64 : taken;
    EXPECT_THROW(ring.writer.put(message.outgoing), IoError) << taken;
  }
}

// Random bytes over what was written: an error, or nothing, or other bytes; never more than the message has.
TEST(Ring, SurvivesAWriterThatWritesGarbage) {
  int errors = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Dice dice(seed);
    TestRing ring(1024);
    const std::int64_t bytes = dice.below(700);
    TestMessage message(0, 1, seed, bytes, 1);
    while (message.outgoing.left() > 0 && ring.writer.put(message.outgoing)) {
    }
    for (std::int64_t n = 1 + dice.below(8); n > 0; --n) {
      const std::int64_t at = dice.below(seed % 2 == 0 ? 64 : 1024);
      ring.bytes.get()[at] = static_cast<std::byte>(dice.next() >> 40);
    }
    try {
      for (int turns = 0; turns < 50; ++turns) {
        const MessageHeader* header = ring.reader.front();
        if (header == nullptr) break;
        to_string(header->what);
        TestSink sink(std::min<std::int64_t>(header->bytes, 100'000), TestSink::Way::shown, 0);
        if (header->bytes > 100'000) break;
        while (ring.reader.pull(sink) == RingReader::Pulled::fragment) {
        }
      }
    } catch (const IoError&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 5000);
}

}  // namespace
}  // namespace lamina::comm
