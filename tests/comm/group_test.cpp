// Collectives of whole groups: results, bits, bytes, order, and what goes wrong.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/comm/worlds.hpp"

namespace lamina::comm {
namespace {

using namespace std::chrono_literals;

double expected(int world, std::int64_t i, Reduction reduction) {
  double total = whole_number(0, i, reduction);
  for (int r = 1; r < world; ++r) {
    const double x = whole_number(r, i, reduction);
    switch (reduction) {
      case Reduction::sum:
      case Reduction::mean: total += x; break;
      case Reduction::min: total = std::min(total, x); break;
      case Reduction::max: total = std::max(total, x); break;
      case Reduction::product: total *= x; break;
    }
  }
  return total;
}

Values numbers(DType dtype, std::int64_t count, int rank, Reduction reduction = Reduction::sum) {
  Values v(dtype, count);
  for (std::int64_t i = 0; i < count; ++i) v.set(i, whole_number(rank, i, reduction));
  return v;
}

std::vector<std::int64_t> counts(int world) {
  const std::int64_t n = world;
  return {0, 1, 2, n - 1, n, n + 1, 2 * n - 1, 1003};
}

class Collectives : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  std::string kind() const { return std::get<0>(GetParam()); }
  int world() const { return std::get<1>(GetParam()); }
};

TEST_P(Collectives, AllReduceIsExactOnWholeNumbers) {
  // Small messages, so that every plan has several.
  auto groups = make_world(kind(), world(), {.timeout = 20s, .segment_bytes = 512});
  on_all(groups, [&](Group& g) {
    for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8}) {
        for (const Reduction reduction :
             {Reduction::sum, Reduction::min, Reduction::max, Reduction::product, Reduction::mean}) {
          if (reduction == Reduction::mean && !is_floating(dtype)) continue;
          for (const std::int64_t count : counts(world())) {
            Values data = numbers(dtype, count, g.rank(), reduction);
            Values out(dtype, count);
            const std::int64_t before = g.bytes_sent();
            g.all_reduce(ConstBuffer(data.all()), out.all(), reduction, algorithm).wait();
            const Values kept = numbers(dtype, count, g.rank(), reduction);
            ASSERT_TRUE(std::ranges::equal(data.bytes(), kept.bytes())) << "the input was written";
            const std::int64_t sent = g.bytes_sent() - before;
            g.all_reduce(data.all(), reduction, algorithm).wait();
            ASSERT_EQ(g.bytes_sent() - before, 2 * sent);
            for (std::int64_t i = 0; i < count; ++i) {
              double want = expected(world(), i, reduction);
              if (reduction == Reduction::mean) {
                Values rounded(dtype, 1);
                rounded.set(0, want / world());
                want = rounded.get(0);
              }
              ASSERT_EQ(data.get(i), want) << name_of(algorithm) << " " << name_of(dtype) << " " << name_of(reduction)
                                           << " " << count << " at " << i << " rank " << g.rank();
              ASSERT_EQ(out.get(i), want);
            }
          }
        }
      }
    }
  });
}

TEST_P(Collectives, TheOthersMoveWhatTheyShould) {
  auto groups = make_world(kind(), world(), {.timeout = 20s, .segment_bytes = 256});
  on_all(groups, [&](Group& g) {
    const int n = world(), me = g.rank();
    for (const std::int64_t count : counts(n)) {
      for (const Algorithm algorithm : algorithms_of(Collective::reduce_scatter)) {
        Values in = numbers(DType::f32, count, me);
        const Block block = block_of(count, n, me);
        Values out(DType::f32, block.count);
        g.reduce_scatter(ConstBuffer(in.all()), out.all(), Reduction::sum, algorithm).wait();
        for (std::int64_t i = 0; i < block.count; ++i) {
          ASSERT_EQ(out.get(i), expected(n, block.first + i, Reduction::sum)) << name_of(algorithm);
        }
        ASSERT_TRUE(std::ranges::equal(in.bytes(), numbers(DType::f32, count, me).bytes()));
      }
      for (const Algorithm algorithm : algorithms_of(Collective::all_gather)) {
        Values in = numbers(DType::i64, count, me), out(DType::i64, count * n);
        g.all_gather(ConstBuffer(in.all()), out.all(), algorithm).wait();
        for (int r = 0; r < n; ++r) {
          for (std::int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(out.get(r * count + i), whole_number(r, i, Reduction::sum)) << name_of(algorithm);
          }
        }
      }
      for (int root = 0; root < n; ++root) {
        for (const Algorithm algorithm : algorithms_of(Collective::broadcast)) {
          Values data = numbers(DType::f16, count, me);
          g.broadcast(data.all(), root, algorithm).wait();
          ASSERT_TRUE(std::ranges::equal(data.bytes(), numbers(DType::f16, count, root).bytes())) << name_of(algorithm);
        }
        Values in = numbers(DType::f64, count, me), all(DType::f64, count * n), back(DType::f64, count);
        g.gather(ConstBuffer(in.all()), all.all(), root).wait();
        for (int r = 0; r < n && me == root; ++r) {
          for (std::int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(all.get(r * count + i), whole_number(r, i, Reduction::sum));
          }
        }
        g.scatter(ConstBuffer(all.all()), back.all(), root).wait();
        ASSERT_TRUE(std::ranges::equal(in.bytes(), back.bytes()));
      }
      Values to_all(DType::u8, count * n), from_all(DType::u8, count * n);
      for (int r = 0; r < n; ++r) {
        for (std::int64_t i = 0; i < count; ++i)
          to_all.set(r * count + i, static_cast<double>((10 * me + r + i) % 251));
      }
      g.all_to_all(ConstBuffer(to_all.all()), from_all.all()).wait();
      for (int r = 0; r < n; ++r) {
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(from_all.get(r * count + i), (10 * r + me + i) % 251);
      }
      g.barrier().wait();
    }
  });
}

TEST_P(Collectives, RandomNumbersEndAsTheSameBitsEverywhere) {
  auto groups = make_world(kind(), world(), {.timeout = 20s, .segment_bytes = 1024});
  constexpr std::int64_t count = 4099;
  const auto n = static_cast<std::size_t>(world());
  for (const Algorithm algorithm : algorithms_of(Collective::all_reduce)) {
    std::vector<std::vector<float>> data(n);
    std::vector<double> exact(count), magnitude(count);
    for (std::size_t r = 0; r < n; ++r) {
      const Rng rng(r + 1);
      for (std::int64_t i = 0; i < count; ++i) {
        data[r].push_back(static_cast<float>(rng.normal(0, static_cast<std::uint64_t>(i))));
        exact[static_cast<std::size_t>(i)] += data[r].back();
        magnitude[static_cast<std::size_t>(i)] += std::abs(data[r].back());
      }
    }
    data[n - 1][7] = std::nanf("3");
    on_all(groups,
           [&](Group& g) { g.all_reduce(data[static_cast<std::size_t>(g.rank())], Reduction::sum, algorithm).wait(); });
    for (std::size_t r = 1; r < n; ++r) {
      ASSERT_EQ(std::memcmp(data[r].data(), data[0].data(), count * sizeof(float)), 0) << name_of(algorithm);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i == 7) {
        ASSERT_TRUE(std::isnan(data[0][i]));
        continue;
      }
      // Each of the n - 1 additions is off by half an ulp of a partial sum at most.
      const double bound = static_cast<double>(n - 1) * magnitude[i] * std::ldexp(1.0, -24);
      ASSERT_LE(std::abs(data[0][i] - exact[i]), bound) << name_of(algorithm) << " at " << i;
    }
  }
}

TEST_P(Collectives, ScatteredBuffersAndManyInFlight) {
  auto groups = make_world(kind(), world(), {.timeout = 20s, .segment_bytes = 300});
  on_all(groups, [&](Group& g) {
    constexpr int kWorks = 12;
    std::vector<Values> data;
    std::vector<Work> works;
    for (int w = 0; w < kWorks; ++w) data.push_back(numbers(DType::f32, 500 + 37 * w, g.rank()));
    for (int w = 0; w < kWorks; ++w) {
      Values& v = data[static_cast<std::size_t>(w)];
      Buffer scattered(nullptr, 0, DType::f32);
      // Backwards in memory, in parts of odd sizes.
      for (std::int64_t end = v.count(); end > 0;) {
        const std::int64_t n = std::min<std::int64_t>(end, 1 + (end * 7) % 61);
        const Buffer part = v.part(end - n, n);
        scattered.add(part.pieces()[0].data, n);
        end -= n;
      }
      works.push_back(g.all_reduce(scattered));
    }
    for (std::size_t w = works.size(); w-- > 0;) works[w].wait();  // the last one first
    for (const Values& v : data) {
      for (std::int64_t i = 0; i < v.count(); ++i) ASSERT_EQ(v.get(i), expected(world(), i, Reduction::sum));
    }
  });
}

std::string world_name(const ::testing::TestParamInfo<std::tuple<std::string, int>>& info) {
  return std::get<0>(info.param) + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(Worlds, Collectives,
                         ::testing::Combine(::testing::ValuesIn(world_kinds()), ::testing::Values(1, 2, 3, 4, 5, 8, 9)),
                         world_name);

class Groups : public ::testing::TestWithParam<std::string> {};

TEST_P(Groups, RandomRoundsAllComeOut) {
  auto groups = make_world(GetParam(), 4, {.timeout = 20s, .segment_bytes = 2048});
  on_all(groups, [&](Group& g) {
    std::mt19937 same(7);                                     // what all ranks do
    std::mt19937 own(static_cast<unsigned>(g.rank()) + 100);  // when this one does it
    struct Open {
      Values data;
      Work work;
    };
    std::deque<Open> open;
    for (int round = 0; round < 1500; ++round) {
      const auto count = static_cast<std::int64_t>(same() % 4000);
      const auto algorithms = algorithms_of(Collective::all_reduce);
      const Algorithm algorithm = algorithms[same() % algorithms.size()];
      Open& o = open.emplace_back(Open{numbers(DType::f32, count, g.rank()), {}});
      o.work = g.all_reduce(o.data.all(), Reduction::sum, algorithm);
      if (own() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
      const std::size_t keep = own() % 6;
      while (open.size() > keep) {
        open.front().work.wait();
        const Values& v = open.front().data;
        for (std::int64_t i = 0; i < v.count(); i += 97) ASSERT_EQ(v.get(i), expected(4, i, Reduction::sum));
        open.pop_front();
      }
    }
    while (!open.empty()) {
      open.front().work.wait();
      open.pop_front();
    }
  });
}

// Rank 1 sends to rank 0 only after it has rank 0's answer to what rank 2 sent: receives of different ranks pass.
TEST_P(Groups, MessagesOfDifferentRanksPassEachOther) {
  auto groups = make_world(GetParam(), 3, {.timeout = 5s});
  on_all(groups, [&](Group& g) {
    std::vector<int> value{g.rank()}, other{-1};
    if (g.rank() == 0) {
      Work first = g.receive(value, 1, 5);
      g.receive(other, 2, 6).wait();
      EXPECT_EQ(other[0], 2);
      std::vector<int> answer{42};
      g.send(ConstBuffer(answer), 1, 7).wait();
      first.wait();
      EXPECT_EQ(value[0], 43);
    } else if (g.rank() == 1) {
      g.receive(value, 0, 7).wait();
      value[0] += 1;
      g.send(ConstBuffer(value), 0, 5).wait();
    } else {
      g.send(ConstBuffer(value), 0, 6).wait();
    }
  });
}

TEST_P(Groups, WorkIsDoneWhileNobodyWaits) {
  auto groups = make_world(GetParam(), 2, {.timeout = 5s});
  on_all(groups, [&](Group& g) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> data(20000, 1.0f);
      Work work = g.all_reduce(data);
      // Computing, as far as the group knows: asking for times drives nothing.
      bool finished = false;
      for (int patience = 0; patience < 2000 && !finished; ++patience) {
        std::this_thread::sleep_for(1ms);
        try {
          finished = work.times().bytes_sent > 0;
        } catch (const ValueError&) {
        }
      }
      EXPECT_TRUE(finished) << "round " << round;
      work.wait();
      EXPECT_EQ(data[123], 2.0f);
    }
  });
}

double cpu_seconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_P(Groups, IdleAndWaitingCostNothing) {
  auto groups = make_world(GetParam(), 4, {.timeout = 5s});
  on_all(groups, [](Group& g) { g.barrier().wait(); });
  double before = cpu_seconds();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(cpu_seconds() - before, 0.03) << "idle";
  before = cpu_seconds();
  on_all(groups, [](Group& g) {
    if (g.rank() == 2) std::this_thread::sleep_for(300ms);
    g.barrier().wait();
  });
  EXPECT_LT(cpu_seconds() - before, 0.06) << "three wait for one";
}

// ---- disagreement ----

using Call = std::function<Work(Group&, std::vector<float>&, std::vector<float>&)>;
struct Disagreement {
  const char* name;
  Call one, others;
  std::vector<std::string> said;
};

std::vector<Disagreement> disagreements() {
  const Call reduce = [](Group& g, auto& a, auto&) { return g.all_reduce(a); };
  return {
      {"counts",
       [](Group& g, auto& a, auto&) { return g.all_reduce(std::span(a).first(409598)); },
       reduce,
       {"409598", "409600"}},
      {"reductions", [](Group& g, auto& a, auto&) { return g.all_reduce(a, Reduction::max); }, reduce, {"max", "sum"}},
      {"dtypes",
       [](Group& g, auto& a, auto&) {
         return g.all_reduce(Buffer(reinterpret_cast<std::byte*>(a.data()), 409600, DType::bf16));
       },
       reduce,
       {"bf16", "f32"}},
      {"operations", [](Group& g, auto& a, auto&) { return g.broadcast(a, 0); }, reduce, {"all_reduce"}},
      {"algorithms",
       [](Group& g, auto& a, auto&) { return g.all_reduce(a, Reduction::sum, Algorithm::tree); },
       reduce,
       {"tree", "by"}},
      {"order",
       [](Group& g, auto& a, auto& b) {
         Work first = g.broadcast(a, 0);
         first = g.all_reduce(b);
         return first;
       },
       [](Group& g, auto& a, auto& b) {
         Work first = g.all_reduce(b);
         first = g.broadcast(a, 0);
         return first;
       },
       {"#1"}},
  };
}

TEST_P(Groups, DisagreementIsAMismatchOnEveryRank) {
  for (const Disagreement& d : disagreements()) {
    for (const int odd : {0, 2}) {
      auto groups = make_world(GetParam(), 4, {.timeout = 10s});
      const auto begin = std::chrono::steady_clock::now();
      const Failures failures = try_on_all(groups, [&](Group& g) {
        std::vector<float> a(409600, 1.0f), b(409600, 1.0f);
        (g.rank() == odd ? d.one : d.others)(g, a, b).wait();
        g.barrier().wait();  // one that only sends may be done before anybody looks at what it sent
      });
      EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s) << d.name;
      for (const auto& f : failures) {
        const std::string text = text_of(f);
        EXPECT_TRUE(text.starts_with("Mismatch: group: rank ")) << d.name << ": " << text;
        for (const std::string& part : d.said) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
      }
      // And stays so.
      EXPECT_THROW(groups[1].barrier(), Mismatch);
    }
  }
}

// ---- lateness and loss ----

TEST_P(Groups, ALatePeerIsATimeoutThatNamesIt) {
  const std::vector<std::pair<const char*, std::function<Work(Group&, std::vector<float>&, std::vector<float>&)>>>
      calls = {
          {"all_reduce", [](Group& g, auto& a, auto&) { return g.all_reduce(a); }},
          {"all_gather",
           [](Group& g, auto& a, auto& b) {
             return g.all_gather(ConstBuffer(std::span(a).first(8)), std::span(b).first(32));
           }},
          {"barrier", [](Group& g, auto&, auto&) { return g.barrier(); }},
      };
  for (const auto& [name, call] : calls) {
    for (const auto late : {100ms, 900ms}) {
      auto groups = make_world(GetParam(), 4, {.timeout = 500ms});
      std::vector<double> seconds(4);
      const Failures failures = try_on_all(groups, [&](Group& g) {
        std::vector<float> a(64, 1.0f), b(64);
        if (g.rank() == 2) std::this_thread::sleep_for(late);
        const auto begin = std::chrono::steady_clock::now();
        try {
          call(g, a, b).wait();
        } catch (...) {
          seconds[static_cast<std::size_t>(g.rank())] =
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
          throw;
        }
      });
      for (std::size_t r = 0; r < 4; ++r) {
        const std::string text = text_of(failures[r]);
        if (late == 100ms) {
          EXPECT_EQ(text, "") << name;
        } else {
          EXPECT_TRUE(text.starts_with("Timeout: group: rank 2 is late")) << name << ": " << text;
          if (r != 2) EXPECT_NEAR(seconds[r], 0.5, 0.25) << name;
        }
      }
    }
  }
}

TEST_P(Groups, ARankThatLeavesIsLostToThoseWhoNeedIt) {
  auto groups = make_world(GetParam(), 4, {.timeout = 10s});
  const auto begin = std::chrono::steady_clock::now();
  const Failures failures = try_on_all(groups, [&](Group& g) {
    std::vector<float> data(100000, 1.0f);
    g.all_reduce(data).wait();
    if (g.rank() == 3) {
      std::this_thread::sleep_for(50ms);
      const Group gone = std::move(g);
      return;
    }
    g.all_reduce(data).wait();
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_TRUE(text_of(failures[r]).starts_with("PeerLost: ")) << text_of(failures[r]);
    EXPECT_NE(text_of(failures[r]).find("rank 3"), std::string::npos) << text_of(failures[r]);
  }
  EXPECT_EQ(text_of(failures[3]), "");
}

TEST_P(Groups, LeavingWhenAllIsDoneHurtsNobody) {
  for (int round = 0; round < 20; ++round) {
    auto groups = make_world(GetParam(), 4, {.timeout = 10s});
    on_all(groups, [&](Group& g) {
      Group mine = std::move(g);
      std::vector<float> data(100000, 1.0f);
      mine.all_reduce(data).wait();
      ASSERT_EQ(data[99999], 4.0f);
    });
  }
}

TEST_P(Groups, AGroupDestroyedInTheMiddleIsLost) {
  auto groups = make_world(GetParam(), 3, {.timeout = 10s});
  const Failures failures = try_on_all(groups, [&](Group& g) {
    std::vector<float> data(1000000, 1.0f);
    if (g.rank() == 1) {
      Group mine = std::move(g);
      const Work work = mine.all_reduce(data);
      return;  // the group ends with the work unfinished
    }
    std::this_thread::sleep_for(20ms);
    g.all_reduce(data).wait();
  });
  for (const std::size_t r : {0u, 2u}) {
    EXPECT_TRUE(text_of(failures[r]).starts_with("PeerLost: ")) << text_of(failures[r]);
  }
}

TEST_P(Groups, BadArgumentsAreNamedAndHurtNobody) {
  auto groups = make_world(GetParam(), 2, {.timeout = 5s});
  on_all(groups, [](Group& g) {
    std::vector<float> a(10), b(9);
    std::vector<int> i(10);
    EXPECT_THROW((void)g.all_reduce(ConstBuffer(a), b), ShapeError);
    EXPECT_THROW((void)g.all_reduce(ConstBuffer(a), i), DTypeError);
    EXPECT_THROW((void)g.all_reduce(i, Reduction::mean), Error);
    EXPECT_THROW((void)g.broadcast(a, 2), ValueError);
    EXPECT_THROW((void)g.broadcast(a, -1), ValueError);
    EXPECT_THROW((void)g.send(ConstBuffer(a), g.rank()), ValueError);
    EXPECT_THROW((void)g.all_reduce(a, Reduction::sum, Algorithm::direct), ValueError);
    EXPECT_THROW((void)g.all_to_all(ConstBuffer(b), b), ShapeError);
    g.all_reduce(a).wait();
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Groups, ::testing::ValuesIn(world_kinds()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lamina::comm
