#include "lamina/core/options.hpp"

#include <gtest/gtest.h>

#include "lamina/core/error.hpp"

namespace lamina {
namespace {

TEST(NamedOptions, DefaultsAreWhatIsReadWithoutOptions) {
  const auto read = [](NamedOptions& o) {
    return std::tuple{o.integer("depth", 3, 0, 9), o.number("rate", 0.5, 0, 1), o.integers("widths", {4, 5}),
                      o.text("kind", "plain")};  // braces: read in this order
  };
  NamedOptions plain("model", "m");
  const auto values = read(plain);
  EXPECT_EQ(plain.defaults(), "depth=3,rate=0.5,widths=4x5,kind=plain");
  NamedOptions again("model", "m:" + plain.defaults());
  EXPECT_EQ(read(again), values);
  EXPECT_NO_THROW(again.finish());
  // What was given does not become the default.
  NamedOptions given("model", "m:depth=7");
  EXPECT_EQ(std::get<0>(read(given)), 7);
  EXPECT_EQ(given.defaults(), plain.defaults());
}

TEST(NamedOptions, UnknownOnesAreNamedBesideThoseAllowed) {
  NamedOptions options("model", "m:width=3");
  options.integer("depth", 3, 0, 9);
  options.number("rate", 0.5, 0, 1);
  try {
    options.finish();
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(), "model: m has no option 'width'; allowed: depth, rate");
  }
}

}  // namespace
}  // namespace lamina
