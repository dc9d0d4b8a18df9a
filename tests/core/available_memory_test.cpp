#include "lamina/core/available_memory.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace lamina {
namespace {

TEST(AvailableMemory, is_what_a_machine_can_have) {
  EXPECT_GT(available_memory(), std::int64_t{1} << 20);
  EXPECT_LT(available_memory(), std::int64_t{1} << 50);  // Linux says what is left
}

// In a process of its own: a limit on address space, once lowered, must not stay for other tests.
// Sanitizers take more address space than there is memory.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(AvailableMemory, keeps_to_the_address_space) {
  const auto within = [] {
    const std::int64_t before = available_memory();
    rlimit limit{};
    ::getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = rlim_t{1} << 40;
    ::setrlimit(RLIMIT_AS, &limit);
    if (available_memory() > before + (std::int64_t{1} << 30)) return 1;
    limit.rlim_cur = 4096;  // less than is in use
    ::setrlimit(RLIMIT_AS, &limit);
    return available_memory() == 0 ? 0 : 2;
  };
  EXPECT_EXIT(std::_Exit(within()), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace lamina
