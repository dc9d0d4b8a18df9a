// What a tape keeps its nodes and parameters in.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "lamina/autograd/arena.hpp"
#include "lamina/autograd/param_slots.hpp"

namespace lamina {
namespace {

TEST(Arena, PiecesAreAlignedAndDoNotOverlap) {
  for (int round = 0; round < 3; ++round) {  // the second uses the first one's chunks
    Arena arena;
    std::vector<std::pair<unsigned char*, std::size_t>> pieces;
    for (std::size_t i = 0; i < 400; ++i) {
      const std::size_t bytes = i % 50 == 49 ? 20000 : i % 97, align = std::size_t{1} << i % 5;
      auto* at = static_cast<unsigned char*>(arena.allocate(bytes, align));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % align, 0u);
      std::memset(at, static_cast<int>(i % 251), bytes);
      pieces.emplace_back(at, bytes);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::size_t b = 0; b < pieces[i].second; ++b) ASSERT_EQ(pieces[i].first[b], i % 251) << i;
    }
  }
}

TEST(Arena, EndsOnAnotherThreadThanItBeganOn) {
  Arena arena;
  for (int i = 0; i < 100; ++i) arena.allocate(1000, 8);
  std::thread([moved = std::move(arena)]() mutable { moved.allocate(1000, 8); }).join();
  EXPECT_NE(arena.allocate(8, 8), nullptr);  // a moved-from arena is an empty one
}

TEST(ParamSlots, FindsAllAndNothingElse) {
  std::vector<char> storage(3000);  // only addresses count
  auto param = [&](std::size_t i) { return reinterpret_cast<const Param*>(&storage[i]); };
  ParamSlots slots;
  EXPECT_EQ(slots.find(param(0)), nullptr);
  for (std::size_t i = 0; i < 1000; ++i) {
    slots.insert(param(3 * i), static_cast<int>(i));
    EXPECT_EQ(slots.find(param(3 * i + 1)), nullptr);
  }
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_NE(slots.find(param(3 * i)), nullptr);
    EXPECT_EQ(*slots.find(param(3 * i)), static_cast<int>(i));
  }
}

}  // namespace
}  // namespace lamina
