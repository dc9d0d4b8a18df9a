#include "lamina/core/thread_pool.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "lamina/core/error.hpp"

namespace lamina {
namespace {

class ThreadPoolWidths : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(widths, ThreadPoolWidths, ::testing::Values(1, 2, 7));

TEST_P(ThreadPoolWidths, every_block_runs_once) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.width(), GetParam());
  for (const std::int64_t count : {0, 1, 2, 3, 100, 10007}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    pool.run(count, [&](std::int64_t i) { runs[static_cast<std::size_t>(i)].fetch_add(1); });
    for (const auto& r : runs) ASSERT_EQ(r.load(), 1);
  }
}

TEST_P(ThreadPoolWidths, many_short_runs) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> total{0};
  for (int i = 0; i < 5000; ++i) pool.run(3, [&](std::int64_t block) { total += block; });
  EXPECT_EQ(total.load(), 3 * 5000);
}

TEST_P(ThreadPoolWidths, the_first_exception_reaches_the_caller_and_the_pool_lives_on) {
  ThreadPool pool(GetParam());
  for (int i = 0; i < 1000; ++i) {
    std::atomic<int> after{0};
    try {
      pool.run(64, [&](std::int64_t block) {
        if (block == i % 7) throw std::runtime_error("block " + std::to_string(block));
        ++after;
      });
      FAIL() << "no exception";
    } catch (const std::runtime_error& e) {
      EXPECT_EQ(std::string(e.what()), "block " + std::to_string(i % 7));
    }
    EXPECT_LT(after.load(), 64);
  }
  std::atomic<int> done{0};
  pool.run(10, [&](std::int64_t) { ++done; });
  EXPECT_EQ(done.load(), 10);
}

TEST_P(ThreadPoolWidths, all_blocks_throw) {
  ThreadPool pool(GetParam());
  for (int i = 0; i < 100; ++i) {
    EXPECT_THROW(pool.run(50, [](std::int64_t) { throw std::runtime_error("all"); }), std::runtime_error);
  }
}

TEST_P(ThreadPoolWidths, nested_runs_stay_on_their_thread) {
  ThreadPool pool(GetParam());
  std::atomic<int> blocks{0}, moved{0};
  pool.run(8, [&](std::int64_t) {
    const auto outer = std::this_thread::get_id();
    pool.run(5, [&](std::int64_t) {
      if (std::this_thread::get_id() != outer) ++moved;
      pool.run(2, [&](std::int64_t) { ++blocks; });
    });
  });
  EXPECT_EQ(blocks.load(), 80);
  EXPECT_EQ(moved.load(), 0);
}

TEST_P(ThreadPoolWidths, callers_on_many_threads) {
  ThreadPool pool(GetParam());
  std::vector<std::thread> callers;
  std::atomic<std::int64_t> total{0};
  std::atomic<int> caught{0};
  for (int t = 0; t < 6; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        std::int64_t mine = 0;
        std::mutex mutex;
        pool.run(20, [&](std::int64_t block) {
          const std::lock_guard lock(mutex);
          mine += block;
        });
        total += mine;
        try {
          if (i % 10 == t) pool.run(4, [](std::int64_t) { throw ValueError("mine"); });
        } catch (const ValueError&) {
          ++caught;
        }
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(total.load(), 6 * 300 * 190);
  EXPECT_EQ(caught.load(), 6 * 30);
}

TEST(ThreadPool, uses_its_threads) {
  ThreadPool pool(4);
  std::set<std::thread::id> ids;
  std::mutex mutex;
  for (int attempt = 0; attempt < 200 && ids.size() < 2; ++attempt) {
    pool.run(16, [&](std::int64_t) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
  }
  EXPECT_GE(ids.size(), 2u);
  EXPECT_LE(ids.size(), 4u);
}

TEST(ThreadPool, width_one_starts_no_thread) {
  ThreadPool pool(1);
  const auto caller = std::this_thread::get_id();
  pool.run(100, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

TEST(ThreadPool, refuses_odd_widths) {
  EXPECT_THROW(ThreadPool(0), ValueError);
  EXPECT_THROW(ThreadPool(-3), ValueError);
  EXPECT_THROW(ThreadPool(100000), ValueError);
}

TEST(ThreadPool, pools_come_and_go) {
  for (int i = 0; i < 200; ++i) {
    ThreadPool pool(3);
    if (i % 2 == 0) pool.run(6, [](std::int64_t) {});
  }
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ThreadPool, idle_workers_sleep) {
  ThreadPool pool(7);
  pool.run(1000, [](std::int64_t) {});
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

// The child of a process whose workers sleep: it has none of them, and must neither wait for them nor hang at its end.
TEST(ThreadPool, works_in_a_forked_child) {
  auto pool = std::make_unique<ThreadPool>(4);
  std::atomic<int> warm{0};
  pool->run(100, [&](std::int64_t) { ++warm; });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the workers sleep
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);  // a hang ends with a signal
    std::atomic<int> done{0};
    pool->run(100, [&](std::int64_t) { ++done; });
    pool.reset();
#ifndef __SANITIZE_THREAD__  // it lets no forked child start threads
    ThreadPool own(3);
    own.run(100, [&](std::int64_t) { ++done; });
#else
    done += 100;
#endif
    _exit(done.load() == 200 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::atomic<int> still{0};
  pool->run(100, [&](std::int64_t) { ++still; });
  EXPECT_EQ(still.load(), 100);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// No address space for another stack: the blocks run all the same.
TEST(ThreadPool, works_when_no_thread_can_be_started) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    const rlimit limit{1, 1};
    std::atomic<int> done{0};
    ThreadPool pool(4);
    setrlimit(RLIMIT_AS, &limit);
    for (int i = 0; i < 3; ++i) pool.run(100, [&](std::int64_t) { ++done; });
    _exit(done.load() == 300 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(ThreadPool, available_cpus) { EXPECT_GE(available_cpus(), 1); }

// The caller has ended its part of the run while a worker is late. A worker that then still looks at the run's function
// races with the caller: the thread sanitizer tells, as long as nothing here orders the two (relaxed).
TEST(ThreadPool, RunEndsWhileAWorkerIsLate) {
  ThreadPool pool(2, 0);
  const auto caller = std::this_thread::get_id();
  for (int run = 0; run < 10; ++run) {
    std::atomic<int> begun{0}, ended{0};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    pool.run(2, [&](std::int64_t) {
      begun.fetch_add(1, std::memory_order_relaxed);
      while (begun.load(std::memory_order_relaxed) < 2 && std::chrono::steady_clock::now() < patience) {
        std::this_thread::yield();
      }
      if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      ended.fetch_add(1, std::memory_order_relaxed);
    });
    ASSERT_EQ(ended.load(), 2) << "run " << run;
  }
}

}  // namespace
}  // namespace lamina
