#include "lamina/core/error.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace lamina {
namespace {

std::string message_of_failure() {
  try {
    fail<ShapeError>("matmul", "operand {}: inner dimension {} does not match {}", 1, 64, 65);
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Error, message_grammar) {
  EXPECT_EQ(message_of_failure(), "matmul: operand 1: inner dimension 64 does not match 65");
}

TEST(Error, call_site_names_file_and_line) {
  const SourceLocation here = SourceLocation::current();
  const CallSite site(here);
  EXPECT_EQ(message_of_failure(),
            fmt::format("matmul: operand 1: inner dimension 64 does not match 65 [error_test.cpp:{}]", here.line()));
}

TEST(Error, outer_call_site_wins) {
  const SourceLocation outer = SourceLocation::current();
  const CallSite site(outer);
  {
    const SourceLocation inner = SourceLocation::current();
    const CallSite inside(inner);
    EXPECT_NE(message_of_failure().find(fmt::format(":{}]", outer.line())), std::string::npos);
  }
  EXPECT_NE(message_of_failure().find(fmt::format(":{}]", outer.line())), std::string::npos);
}

TEST(Error, call_site_ends_with_its_scope) {
  {
    const SourceLocation here = SourceLocation::current();
    const CallSite site(here);
  }
  EXPECT_EQ(message_of_failure().find('['), std::string::npos);
}

TEST(Error, operators_have_no_call_site_and_do_not_hide_an_inner_one) {
  const SourceLocation none;
  const CallSite absent(none);
  EXPECT_EQ(message_of_failure().find('['), std::string::npos);
  const SourceLocation here = SourceLocation::current();
  const CallSite site(here);
  EXPECT_NE(message_of_failure().find(fmt::format(":{}]", here.line())), std::string::npos);
}

TEST(Error, call_sites_belong_to_their_thread) {
  const SourceLocation here = SourceLocation::current();
  const CallSite site(here);
  std::string other;
  std::thread([&] { other = message_of_failure(); }).join();
  EXPECT_EQ(other.find('['), std::string::npos);
}

TEST(Error, every_kind_is_an_error_and_a_runtime_error) {
  EXPECT_THROW(fail<OutOfMemory>("pool", "none"), Error);
  EXPECT_THROW(fail<PeerLost>("group", "none"), std::runtime_error);
  EXPECT_THROW(fail<Timeout>("group", "none"), Timeout);
}

}  // namespace
}  // namespace lamina
