// A message of more bytes than an int counts.
#include <gtest/gtest.h>

#include "tests/comm/traffic.hpp"
#include "tests/comm/transport_worlds.hpp"

namespace lamina::comm {
namespace {

constexpr std::int64_t kBytes = (std::int64_t{1} << 31) + 5;
constexpr std::size_t kPeriod = 16'777'259;  // no power of two: what is lost, doubled or shifted by one does not match

std::vector<std::byte> period() {
  std::vector<std::byte> bytes(kPeriod);
  for (std::size_t at = 0; at < kPeriod; ++at) bytes[at] = byte_of(0, 1, 0, static_cast<std::int64_t>(at));
  return bytes;
}

// Compares instead of keeping.
class Comparison final : public Incoming {
 public:
  std::int64_t left() const noexcept override { return kBytes - at_; }
  std::span<std::byte> writable() noexcept override { return {}; }
  void wrote(std::size_t) override {}
  void take(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const std::size_t at = static_cast<std::size_t>(at_) % kPeriod;
      const std::size_t n = std::min(bytes.size(), kPeriod - at);
      same_ = same_ && std::memcmp(bytes.data(), right_.data() + at, n) == 0;
      at_ += static_cast<std::int64_t>(n);
      bytes = bytes.subspan(n);
    }
  }
  bool same() const noexcept { return same_ && at_ == kBytes; }

 private:
  std::vector<std::byte> right_ = period();
  std::int64_t at_ = 0;
  bool same_ = true;
};

class LongMessage : public testing::TestWithParam<std::string> {};

TEST_P(LongMessage, ArrivesWhole) {
  WorldOptions options;
  options.connections = 2;
  Processes ranks(GetParam(), 2, options, [](Transport& transport) {
    if (transport.rank() == 0) {
      const std::vector<std::byte> bytes = period();
      std::vector<std::span<const std::byte>> pieces;
      for (std::int64_t left = kBytes; left > 0; left -= static_cast<std::int64_t>(kPeriod)) {
        pieces.push_back(std::span(bytes).first(std::min<std::size_t>(kPeriod, left)));
      }
      MessageHeader header;
      header.what.op = Collective::point_to_point;
      header.bytes = kBytes;
      Outgoing message(header, pieces);
      drive(
          transport, 100, [&] { return transport.post(1, message); }, [&] { return transport.taken(1) == 1; });
      return;
    }
    Comparison sink;
    bool whole = false;
    drive(
        transport, 100,
        [&] {
          const std::int64_t before = sink.left();
          whole = transport.pull(0, sink);
          return sink.left() != before;
        },
        [&] { return whole; });
    if (!sink.same()) throw std::runtime_error("wrong bytes");
  });
  EXPECT_EQ(ranks.wait(0), 0);
  EXPECT_EQ(ranks.wait(1), 0);
}

INSTANTIATE_TEST_SUITE_P(All, LongMessage, testing::Values("shm", "tcp"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lamina::comm
