#include "lamina/core/ref.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lamina {
namespace {

struct Tracked : Counted {
  explicit Tracked(int* count) : alive(count) { ++*alive; }
  ~Tracked() override { --*alive; }
  int* alive;
};
struct Derived final : Tracked {
  using Tracked::Tracked;
};

TEST(Ref, destroys_with_the_last) {
  int alive = 0;
  {
    Ref<Tracked> a = make_ref<Tracked>(&alive);
    EXPECT_TRUE(a->sole());
    const Ref<Tracked> b = a;
    EXPECT_FALSE(a->sole());
    EXPECT_EQ(a->owners(), 2);
    EXPECT_EQ(a, b);
    a = nullptr;
    EXPECT_EQ(alive, 1);
    EXPECT_TRUE(b->sole());
    EXPECT_FALSE(a);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Ref, moves_without_counting) {
  int alive = 0;
  Ref<Tracked> a = make_ref<Tracked>(&alive);
  Ref<Tracked> b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT: what a move leaves is part of the contract
  EXPECT_TRUE(b->sole());
  a = std::move(b);
  EXPECT_TRUE(a->sole());
}

TEST(Ref, assignment_to_itself) {
  int alive = 0;
  Ref<Tracked> a = make_ref<Tracked>(&alive);
  Ref<Tracked>& same = a;
  a = same;
  EXPECT_EQ(alive, 1);
  EXPECT_TRUE(a->sole());
}

TEST(Ref, converts_to_a_base) {
  int alive = 0;
  {
    const Ref<Derived> derived = make_ref<Derived>(&alive);
    const Ref<Tracked> base = derived;
    EXPECT_EQ(base->owners(), 2);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Ref, counts_from_many_threads) {
  int alive = 0;
  Ref<Tracked> shared = make_ref<Tracked>(&alive);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([shared] {
      for (int i = 0; i < 10000; ++i) Ref<Tracked> copy = shared;
    });
  }
  for (auto& t : threads) t.join();
  threads.clear();
  EXPECT_TRUE(shared->sole());
  shared = nullptr;
  EXPECT_EQ(alive, 0);
}

}  // namespace
}  // namespace lamina
