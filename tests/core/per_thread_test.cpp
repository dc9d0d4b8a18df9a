#include "lamina/core/per_thread.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "lamina/core/spin_lock.hpp"

namespace lamina {
namespace {

using Count = std::atomic<std::int64_t>;

void raise(PerThread<Count>& counts) {
  Count& mine = counts.local();
  mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::int64_t sum(const PerThread<Count>& counts) {
  std::int64_t total = 0;
  counts.for_each([&](const Count& c) { total += c.load(std::memory_order_relaxed); });
  return total;
}

TEST(PerThread, nothing_is_lost_between_threads_and_objects) {
  // More objects than a thread remembers, used in turn.
  std::vector<std::unique_ptr<PerThread<Count>>> objects;
  for (int i = 0; i < 9; ++i) objects.push_back(std::make_unique<PerThread<Count>>());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        for (auto& object : objects) raise(*object);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& object : objects) EXPECT_EQ(sum(*object), 4 * 500);
}

TEST(PerThread, a_new_object_at_an_old_address_begins_anew) {
  for (int i = 0; i < 20; ++i) {
    auto object = std::make_unique<PerThread<Count>>();
    raise(*object);
    EXPECT_EQ(sum(*object), 1);
  }
}

TEST(SpinLock, holds_others_off) {
  SpinLock lock;
  std::int64_t count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        std::lock_guard guard(lock);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * 20000);
}

}  // namespace
}  // namespace lamina
