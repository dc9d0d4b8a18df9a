#include "lamina/core/memory_pool.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/core/rng.hpp"

namespace lamina {
namespace {

// Knows what it gave out, and can run dry.
class Source final : public MemorySource {
 public:
  ~Source() override { EXPECT_TRUE(blocks.empty()) << "not everything was given back"; }
  void* allocate(std::size_t bytes) override {
    if (held + bytes > capacity) return nullptr;
    held += bytes;
    void* data = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    blocks[data] = bytes;
    return data;
  }
  void release(void* data, std::size_t bytes) noexcept override {
    const auto it = blocks.find(data);
    ASSERT_NE(it, blocks.end()) << "given back twice, or never taken";
    EXPECT_EQ(it->second, bytes);
    held -= bytes;
    blocks.erase(it);
    std::free(data);
  }
  std::map<void*, std::size_t> blocks;
  std::size_t held = 0;
  std::size_t capacity = SIZE_MAX;
};

// A queue whose work is done when the test says so, or when somebody waits.
class ManualQueue final : public Queue {
 public:
  bool synchronous() const noexcept override { return false; }
  Event record() override { return Event(Ref<Queue>(this), ++issued); }
  void wait_for(const Event&) override {}
  bool passed(std::uint64_t ticket) const override { return ticket <= done; }
  void wait(std::uint64_t ticket) override {
    ++waits;
    done = std::max(done, ticket);
    if (failing) throw DeviceError("the queue's work failed");
  }
  void copy_in(void*, const void*, std::size_t) override {}
  void copy_out(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill_zero(void*, std::size_t) override {}
  std::uint64_t issued = 0, done = 0;
  int waits = 0;
  bool failing = false;
};

class MemoryPoolTest : public ::testing::Test {
 protected:
  Source source;  // outlives the pools
  Ref<ManualQueue> a = make_ref<ManualQueue>(), b = make_ref<ManualQueue>();
};

// Free blocks are listed by this number: two sizes with one number would be one given out for the other.
TEST_F(MemoryPoolTest, class_indices) {
  std::size_t last = 0;
  for (std::size_t size = 64; size < std::size_t{1} << 40; size = MemoryPool::class_size(size + 1)) {
    ASSERT_EQ(MemoryPool::class_index(size), last + 1) << size;
    ++last;
  }
  EXPECT_LT(MemoryPool::class_index(std::size_t{1} << 62), 512u);
}

TEST_F(MemoryPoolTest, class_sizes) {
  EXPECT_EQ(MemoryPool::class_size(0), 64u);
  EXPECT_EQ(MemoryPool::class_size(1), 64u);
  EXPECT_EQ(MemoryPool::class_size(64), 64u);
  EXPECT_EQ(MemoryPool::class_size(65), 128u);
  EXPECT_EQ(MemoryPool::class_size(1024), 1024u);
  EXPECT_EQ(MemoryPool::class_size(1025), 1152u);
  std::size_t before = 0;
  for (std::size_t bytes = 1; bytes < 200000; bytes += 7) {
    const std::size_t size = MemoryPool::class_size(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_GE(size, before);
    ASSERT_EQ(size % 64, 0u);
    ASSERT_EQ(MemoryPool::class_size(size), size) << bytes;
    ASSERT_LE(size, std::max(bytes + 63, bytes + bytes / 8)) << bytes;
    before = size;
  }
  const std::size_t large = (std::size_t{1} << 40) + 1;
  EXPECT_LE(MemoryPool::class_size(large), large + large / 8);
}

TEST_F(MemoryPoolTest, freed_blocks_are_handed_out_again) {
  MemoryPool pool(source, {});
  const auto first = pool.allocate(1000, a.get());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data) % 64, 0u);
  EXPECT_EQ(first.bytes, 1024u);
  pool.release(first, a.get(), {});
  const auto second = pool.allocate(1010, a.get());
  EXPECT_EQ(second.data, first.data);
  EXPECT_EQ(pool.stats().system_calls, 1);
  EXPECT_EQ(pool.stats().allocations, 2);
  pool.release(second, a.get(), {});
}

TEST_F(MemoryPoolTest, another_queue_gets_another_block) {
  MemoryPool pool(source, {});
  const auto first = pool.allocate(1000, a.get());
  pool.release(first, a.get(), {});
  const auto second = pool.allocate(1000, b.get());
  EXPECT_NE(second.data, first.data);
  pool.release(second, b.get(), {});
}

TEST_F(MemoryPoolTest, statistics) {
  MemoryPool pool(source, {});
  const auto x = pool.allocate(1024, a.get());
  const auto y = pool.allocate(2048, a.get());
  EXPECT_EQ(pool.stats().live_bytes, 3072);
  pool.release(y, a.get(), {});
  MemoryStats stats = pool.stats();
  EXPECT_EQ(stats.live_bytes, 1024);
  EXPECT_EQ(stats.peak_bytes, 3072);
  EXPECT_EQ(stats.cached_bytes, 2048);
  pool.reset_peak();
  EXPECT_EQ(pool.stats().peak_bytes, 1024);
  pool.trim();
  EXPECT_EQ(pool.stats().cached_bytes, 0);
  EXPECT_EQ(source.held, 1024u);
  pool.release(x, a.get(), {});
}

TEST_F(MemoryPoolTest, blocks_in_use_elsewhere_stay_pending) {
  MemoryPool pool(source, {});
  const auto x = pool.allocate(1024, a.get());
  const Event use = b->record();
  pool.release(x, a.get(), {&use, 1});
  EXPECT_EQ(pool.stats().pending_bytes, 1024);
  const auto y = pool.allocate(1024, a.get());
  EXPECT_NE(y.data, x.data);
  b->done = use.ticket();
  const auto z = pool.allocate(1024, a.get());
  EXPECT_EQ(z.data, x.data);
  EXPECT_EQ(pool.stats().pending_bytes, 0);
  EXPECT_EQ(b->waits, 0);
  pool.release(y, a.get(), {});
  pool.release(z, a.get(), {});
}

TEST_F(MemoryPoolTest, limit) {
  MemoryPool pool(source, {.limit_bytes = 4096});
  const auto x = pool.allocate(2048, a.get());
  const auto y = pool.allocate(2048, a.get());
  try {
    pool.allocate(64, a.get());
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_STREQ(e.what(), "memory pool: 64 bytes cannot be allocated; live 4096, cached 0, pending 0, limit 4096");
  }
  pool.release(x, a.get(), {});
  const auto small = pool.allocate(64, a.get());  // the cached block is given back to make room
  EXPECT_EQ(source.held, 2048u + 64u);
  pool.release(y, a.get(), {});
  pool.release(small, a.get(), {});
}

TEST_F(MemoryPoolTest, a_source_without_more_is_not_a_limit_of_zero) {
  source.capacity = 2048;
  MemoryPool pool(source, {});
  const auto x = pool.allocate(2048, a.get());
  try {
    pool.allocate(64, a.get());
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_STREQ(
        e.what(),
        "memory pool: 64 bytes cannot be allocated; live 2048, cached 0, pending 0, no limit set: the system has "
        "no more");
  }
  pool.release(x, a.get(), {});
}

TEST_F(MemoryPoolTest, waits_for_pending_blocks_before_it_gives_up) {
  MemoryPool pool(source, {.limit_bytes = 2048});
  const auto x = pool.allocate(2048, a.get());
  const Event use = b->record();
  pool.release(x, a.get(), {&use, 1});
  const auto same_size = pool.allocate(2048, a.get());
  EXPECT_EQ(same_size.data, x.data);  // pytorch#189504: the own pool is searched again after waiting
  EXPECT_EQ(b->waits, 1);
  const Event later = b->record();
  pool.release(same_size, a.get(), {&later, 1});
  const auto other_size = pool.allocate(512, b.get());
  EXPECT_EQ(b->waits, 2);
  pool.release(other_size, b.get(), {});
}

TEST_F(MemoryPoolTest, a_failing_queue_does_not_stop_others_from_allocating) {
  MemoryPool pool(source, {.limit_bytes = 2048});
  const auto x = pool.allocate(2048, a.get());
  const Event use = b->record();
  b->failing = true;
  pool.release(x, a.get(), {&use, 1});
  const auto y = pool.allocate(2048, a.get());
  EXPECT_EQ(y.data, x.data);
  pool.release(y, a.get(), {});
}

TEST_F(MemoryPoolTest, source_runs_dry_and_recovers) {
  MemoryPool pool(source, {});
  source.capacity = 4096;
  const auto x = pool.allocate(4096, a.get());
  EXPECT_THROW(pool.allocate(1024, a.get()), OutOfMemory);
  pool.release(x, a.get(), {});
  const auto y = pool.allocate(1024, b.get());  // of another queue and size: the cache is trimmed for it
  pool.release(y, b.get(), {});
  EXPECT_THROW(pool.allocate(SIZE_MAX, a.get()), OutOfMemory);
  EXPECT_THROW(pool.allocate((std::size_t{1} << 62) + 1, a.get()), OutOfMemory);
}

TEST_F(MemoryPoolTest, without_a_cache_everything_goes_back) {
  MemoryPool pool(source, {.limit_bytes = 0, .cache = false, .poison = false});
  const auto x = pool.allocate(100, a.get());
  const auto y = pool.allocate(100, a.get());
  pool.release(x, a.get(), {});
  EXPECT_EQ(pool.stats().cached_bytes, 0);
  EXPECT_EQ(source.held, 128u);
  const Event use = b->record();
  pool.release(y, a.get(), {&use, 1});
  b->done = use.ticket();
  const auto z = pool.allocate(700, a.get());  // collects what was pending
  EXPECT_EQ(pool.stats().cached_bytes, 0);
  EXPECT_EQ(source.held, 704u);
  pool.release(z, a.get(), {});
}

TEST_F(MemoryPoolTest, poison_fills_every_block) {
  MemoryPool pool(source, {.limit_bytes = 0, .cache = true, .poison = true});
  for (int round = 0; round < 2; ++round) {
    const auto x = pool.allocate(200, a.get());
    for (std::size_t i = 0; i < x.bytes; ++i) ASSERT_EQ(static_cast<unsigned char*>(x.data)[i], 0xFF);
    std::memset(x.data, 0, x.bytes);
    pool.release(x, a.get(), {});
  }
}

TEST_F(MemoryPoolTest, pending_blocks_are_given_back_at_the_end) {
  auto pool = std::make_unique<MemoryPool>(source, MemoryPool::Options{});
  const auto x = pool->allocate(100, a.get());
  const Event use = b->record();
  pool->release(x, a.get(), {&use, 1});
  b->failing = true;
  pool.reset();
  EXPECT_EQ(source.held, 0u);
}

TEST_F(MemoryPoolTest, from_several_threads) {
  MemoryPool pool(source, {.limit_bytes = 1 << 20, .cache = true, .poison = true});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Rng rng(static_cast<std::uint64_t>(t));
      for (std::uint64_t i = 0; i < 3000; ++i) {
        const auto block = pool.allocate(rng.below(5000, 0, i), a.get());
        std::memset(block.data, t, block.bytes);
        for (std::size_t k = 0; k < block.bytes; k += 97) ASSERT_EQ(static_cast<char*>(block.data)[k], t);
        pool.release(block, a.get(), {});
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(pool.stats().live_bytes, 0);
}

// Against a model: a list of live blocks and one of freed blocks with the events that hold them.
TEST_F(MemoryPoolTest, random_use_of_two_queues_against_a_model) {
  constexpr std::int64_t kLimit = 200000;
  struct Live {
    MemoryPool::Block block;
    ManualQueue* queue;
    unsigned char mark;
  };
  struct Freed {
    ManualQueue* queue;
    std::vector<Event> uses;
  };
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const Rng rng(9, trial);
    std::uint64_t draws = 0;
    auto draw = [&](std::uint64_t n) { return rng.below(n, 0, draws++); };
    MemoryPool pool(source, {.limit_bytes = kLimit, .cache = true, .poison = false});
    std::vector<Live> live;
    std::map<void*, Freed> freed;
    std::int64_t live_bytes = 0, peak = 0;
    int out_of_memory = 0;
    for (int step = 0; step < 2000; ++step) {
      ManualQueue* queue = draw(2) == 0 ? a.get() : b.get();
      switch (draw(6)) {
        case 0:
        case 1:
        case 2: {
          const std::size_t bytes = draw(20) == 0 ? draw(60000) : draw(3000);
          try {
            const auto block = pool.allocate(bytes, queue);
            ASSERT_GE(block.bytes, bytes);
            const auto it = freed.find(block.data);
            if (it != freed.end()) {  // reused: by its own queue, its uses done (or freshly from the source)
              if (it->second.queue == queue) {
                for (const Event& use : it->second.uses) ASSERT_TRUE(use.passed());
              }
              freed.erase(it);
            }
            for (const Live& other : live) {
              const auto* begin = static_cast<unsigned char*>(other.block.data);
              ASSERT_TRUE(static_cast<unsigned char*>(block.data) + block.bytes <= begin ||
                          begin + other.block.bytes <= block.data);
            }
            const auto mark = static_cast<unsigned char>(step);
            std::memset(block.data, mark, block.bytes);
            live.push_back({block, queue, mark});
            live_bytes += static_cast<std::int64_t>(block.bytes);
            peak = std::max(peak, live_bytes);
          } catch (const OutOfMemory&) {
            ++out_of_memory;
            ASSERT_GT(live_bytes + static_cast<std::int64_t>(MemoryPool::class_size(bytes)), kLimit);
          }
          break;
        }
        case 3:
        case 4: {
          if (live.empty()) break;
          const std::size_t which = draw(live.size());
          const Live l = live[which];
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
          const auto* bytes = static_cast<unsigned char*>(l.block.data);
          for (std::size_t i = 0; i < l.block.bytes; i += 61) ASSERT_EQ(bytes[i], l.mark);
          std::vector<Event> uses;
          ManualQueue* other = l.queue == a.get() ? b.get() : a.get();
          if (draw(2) == 0) uses.push_back(other->record());
          live_bytes -= static_cast<std::int64_t>(l.block.bytes);
          freed[l.block.data] = {l.queue, uses};
          pool.release(l.block, l.queue, uses);
          break;
        }
        default:
          if (draw(8) == 0) {
            pool.trim();
          } else {
            queue->done = std::min(queue->issued, queue->done + draw(3));
          }
      }
      const MemoryStats stats = pool.stats();
      ASSERT_EQ(stats.live_bytes, live_bytes);
      ASSERT_EQ(stats.peak_bytes, peak);
      ASSERT_EQ(static_cast<std::int64_t>(source.held), stats.live_bytes + stats.cached_bytes + stats.pending_bytes);
      ASSERT_LE(static_cast<std::int64_t>(source.held), kLimit);
    }
    for (const Live& l : live) pool.release(l.block, l.queue, {});
    EXPECT_EQ(pool.stats().live_bytes, 0);
    EXPECT_GT(pool.stats().allocations, pool.stats().system_calls);
    (void)out_of_memory;
  }
}

}  // namespace
}  // namespace lamina
