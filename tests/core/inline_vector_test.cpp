#include "lamina/core/inline_vector.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lamina {
namespace {

// Counts the living, notes who is destroyed without living, and throws at the construction it is told to.
struct Item {
  static inline int alive = 0;
  static inline int until_throw = -1;  // -1: never
  static void step() {
    if (until_throw >= 0 && until_throw-- == 0) throw std::runtime_error("construction");
  }

  explicit Item(int v = 0) : value(v) {
    step();
    ++alive;
  }
  Item(const Item& other) : value(other.value) {
    step();
    ++alive;
  }
  Item(Item&& other) noexcept : value(std::exchange(other.value, -1)) { ++alive; }
  Item& operator=(const Item&) = default;
  Item& operator=(Item&&) = default;
  ~Item() {
    EXPECT_EQ(magic, 0x1234) << "destroyed without having lived";
    magic = 0;
    --alive;
  }
  int value;
  int magic = 0x1234;
};

class InlineVectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Item::alive = 0;
    Item::until_throw = -1;
  }
  void TearDown() override { EXPECT_EQ(Item::alive, 0); }
  using Items = InlineVector<Item, 3>;
  static Items make(int n) {
    Items items;
    for (int i = 0; i < n; ++i) items.emplace_back(i);
    return items;
  }
  static void expect_values(const Items& items, int n) {
    ASSERT_EQ(items.size(), static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) EXPECT_EQ(items[static_cast<std::size_t>(i)].value, i);
  }
};

TEST_F(InlineVectorTest, grows_beyond_its_inline_elements) {
  for (int n = 0; n < 20; ++n) expect_values(make(n), n);
}

TEST_F(InlineVectorTest, copies_and_moves_inline_and_on_the_heap) {
  for (int n : {0, 1, 3, 4, 9}) {
    Items a = make(n);
    const Items copy(a);
    expect_values(copy, n);
    const Items moved(std::move(a));
    expect_values(moved, n);
    EXPECT_EQ(a.size(), 0u);  // NOLINT: a moved-from vector is empty
    a.emplace_back(0);        // and usable
    expect_values(a, 1);
  }
}

TEST_F(InlineVectorTest, assigns_between_all_sizes) {
  for (int n : {0, 2, 3, 4, 9}) {
    for (int m : {0, 2, 3, 4, 9}) {
      Items to = make(n);
      const Items from = make(m);
      to = from;
      expect_values(to, m);
      Items into = make(n);
      into = make(m);
      expect_values(into, m);
    }
  }
  Items self = make(5);
  Items& same = self;
  self = same;
  expect_values(self, 5);
  self = std::move(same);
  expect_values(self, 5);
}

TEST_F(InlineVectorTest, an_argument_may_live_in_the_vector) {
  Items items = make(3);
  items.push_back(items[0]);
  EXPECT_EQ(items[3].value, 0);
  Items full = make(6);  // capacity 6
  full.emplace_back(full[5]);
  EXPECT_EQ(full[6].value, 5);
}

TEST_F(InlineVectorTest, resize_both_ways) {
  Items items = make(2);
  items.resize(7);
  EXPECT_EQ(items.size(), 7u);
  EXPECT_EQ(items[1].value, 1);
  items.resize(1);
  expect_values(items, 1);
  const Items counted(static_cast<std::size_t>(5));
  EXPECT_EQ(counted.size(), 5u);
}

TEST_F(InlineVectorTest, a_throwing_construction_leaves_what_was_there) {
  for (int n = 0; n < 10; ++n) {
    Items items = make(n);
    Item::until_throw = 0;
    EXPECT_THROW(items.emplace_back(7), std::runtime_error);
    Item::until_throw = -1;
    expect_values(items, n);
    EXPECT_EQ(Item::alive, n);
  }
}

TEST_F(InlineVectorTest, a_throwing_copy_leaks_nothing) {
  for (int n : {2, 3, 4, 9}) {
    const Items items = make(n);
    for (int at = 0; at < n; ++at) {
      Item::until_throw = at;
      EXPECT_THROW(Items copy(items), std::runtime_error);
      Item::until_throw = at;
      Items target = make(0);
      EXPECT_THROW(target = items, std::runtime_error);
      Item::until_throw = -1;
      EXPECT_LE(target.size(), static_cast<std::size_t>(n));
    }
    EXPECT_EQ(Item::alive, n);
  }
}

// Its moves copy, and so may throw while the vector grows.
struct Copied {
  Item item;
  explicit Copied(int v) : item(v) {}
  Copied(const Copied& other) : item(other.item) {}
};

TEST_F(InlineVectorTest, a_throwing_move_while_growing_leaks_nothing) {
  for (int at = 0; at < 5; ++at) {
    InlineVector<Copied, 3> items;
    for (int i = 0; i < 3; ++i) items.emplace_back(i);
    Item::until_throw = at;
    if (at < 4) {
      EXPECT_THROW(items.emplace_back(3), std::runtime_error);
      EXPECT_EQ(items.size(), 3u);
    }
    Item::until_throw = -1;
  }
}

TEST_F(InlineVectorTest, strings) {
  InlineVector<std::string, 2> words{"a", "a string that is too long for its own buffer", "c"};
  words.push_back(words[1]);
  EXPECT_EQ(words.back(), words[1]);
  InlineVector<std::string, 2> moved = std::move(words);
  EXPECT_EQ(moved.size(), 4u);
  EXPECT_EQ(moved.front(), "a");
}

}  // namespace
}  // namespace lamina
