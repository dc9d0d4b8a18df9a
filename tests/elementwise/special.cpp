// NaN is not lost on the way, masks are the same in both directions.
#include <cmath>

#include "lamina/kernels/cross_entropy/op.hpp"
#include "lamina/kernels/dropout/op.hpp"
#include "lamina/kernels/global_norm/op.hpp"
#include "lamina/kernels/max/op.hpp"
#include "lamina/kernels/maximum/op.hpp"
#include "lamina/kernels/mean/op.hpp"
#include "lamina/kernels/relu/op.hpp"
#include "lamina/kernels/softmax/op.hpp"
#include "lamina/kernels/sum/op.hpp"
#include "tests/elementwise/support.hpp"

namespace lamina {
namespace {

// Positions in the first vector, between, and in the tail.
constexpr std::size_t kPositions[] = {0, 1, 7, 15, 16, 500, 990, 1001, 1002};

std::vector<float> ramp_with(std::size_t at, float value) {
  std::vector<float> x(1003);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) - 18;
  x[at] = value;
  return x;
}

TEST(NotANumber, ReachesEveryReduction) {
  on_every_isa([](const Device& device) {
    for (const std::size_t at : kPositions) {
      const Tensor x = vector_of(device, ramp_with(at, kNan));
      SCOPED_TRACE(at);
      EXPECT_TRUE(std::isnan(max(x).item()));
      EXPECT_TRUE(std::isnan(min(x).item()));
      EXPECT_TRUE(std::isnan(sum(x).item()));
      EXPECT_TRUE(std::isnan(mean(x).item()));
      const Tensor rows = x.view({17, 59});
      const auto row = at / 59, column = at % 59;
      for (const bool along : {false, true}) {
        const std::vector<float> largest = to_vector<float>(max(rows, {along ? 1 : 0}));
        for (std::size_t i = 0; i < largest.size(); ++i) {
          EXPECT_EQ(std::isnan(largest[i]), i == (along ? row : column)) << i;
        }
      }
    }
  });
}

// The norm that gradients are clipped by.
TEST(NotANumber, ReachesTheGlobalNorm) {
  on_every_isa([](const Device& device) {
    const Tensor clean = vector_of(device, ramp_with(0, 1));
    for (const std::size_t at : kPositions) {
      const Tensor nan[] = {clean, vector_of(device, ramp_with(at, kNan))};
      const Tensor infinite[] = {clean, vector_of(device, ramp_with(at, -kInf))};
      EXPECT_TRUE(std::isnan(global_norm(nan).item())) << at;
      EXPECT_EQ(global_norm(infinite).item(), kInf) << at;
    }
  });
}

TEST(NotANumber, OfMaximumAndRelu) {
  on_every_isa([](const Device& device) {
    const std::vector<float> a{kNan, 1, kNan, 2, -0.0f}, b{1, kNan, kNan, 2, 3};
    const Tensor x = vector_of(device, a), y = vector_of(device, b);
    const std::vector<float> larger = to_vector<float>(maximum(x, y)), smaller = to_vector<float>(minimum(x, y));
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(std::isnan(larger[static_cast<std::size_t>(i)]));
      EXPECT_TRUE(std::isnan(smaller[static_cast<std::size_t>(i)]));
    }
    Tape tape;
    const Var u = tape.input(x), v = tape.input(y), m = maximum(u, v);
    Pass pass = tape.pass();
    pass.seed(m, vector_of(device, {1, 2, 3, 4, 5}));
    pass.run({u, v});
    // To the operand taken, a NaN if there is one, of equal ones the first; once in all.
    EXPECT_EQ(to_vector<float>(*pass.take(u)), (std::vector<float>{1, 0, 0, 4, 0}));
    EXPECT_EQ(to_vector<float>(*pass.take(v)), (std::vector<float>{0, 2, 3, 0, 5}));
    const Differentiated r = differentiate(device, {kNan, -1, 2}, [](const Var& t) { return relu(t); }, {5, 6, 7});
    EXPECT_TRUE(std::isnan(r.value[0]));
    EXPECT_EQ(r.gradient, (std::vector<float>{5, 0, 7}));
  });
}

TEST(NotANumber, StaysInItsRowOfASoftmax) {
  on_every_isa([](const Device& device) {
    for (const std::size_t at : kPositions) {
      const Tensor x = vector_of(device, ramp_with(at, kNan)).view({17, 59});
      for (const std::vector<float>& y : {to_vector<float>(softmax(x)), to_vector<float>(log_softmax(x))}) {
        for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 59 == at / 59) << at << ": " << i;
      }
      const std::vector<std::int64_t> labels(17, 3);
      EXPECT_TRUE(std::isnan(cross_entropy(x, Tensor::from(device, {17}, labels)).item())) << at;
    }
  });
}

// A mask of -inf: weights and gradients exactly 0 where it is, and no NaN from rows that are all masked.
TEST(Masks, OfMinusInfinityInASoftmax) {
  on_every_isa([](const Device& device) {
    std::vector<float> x(3 * 37, -kInf), dy(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      dy[i] = static_cast<float>(i % 11) - 5;
      if (i < 2 * 37 && i % 3 == 0) x[i] = static_cast<float>(i % 7);
    }
    const Differentiated d = differentiate(
        device, x,
        [](const Var& v) {
          return softmax(reshape(v, {3, 37}));
        },
        dy);
    for (std::size_t row = 0; row < 3; ++row) {
      double total = 0, gradients = 0;
      for (std::size_t i = row * 37; i < (row + 1) * 37; ++i) {
        if (std::isinf(x[i])) {
          EXPECT_EQ(d.value[i], 0);
          EXPECT_EQ(d.gradient[i], 0);
        }
        total += static_cast<double>(d.value[i]);
        gradients += static_cast<double>(d.gradient[i]);
      }
      EXPECT_NEAR(total, row < 2 ? 1 : 0, 1e-6);
      EXPECT_NEAR(gradients, 0, 1e-6);
    }
  });
}

TEST(Masks, OfDropoutAreThoseOfItsGradient) {
  on_every_isa([](const Device& device) {
    const std::vector<float> x(4003, 3.0f);
    const Differentiated d = differentiate(device, x, [](const Var& v) {
      return dropout(reshape(v, {1, 4003}), {.rate = 0.25, .rng = Rng(5), .first_example = 9});
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(d.value[i], 3 * d.gradient[i]) << i;
      EXPECT_TRUE(d.gradient[i] == 0 || d.gradient[i] == 1 / 0.75f) << d.gradient[i];
      kept += d.gradient[i] != 0 ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(kept) / 4003, 0.75, 0.03);
  });
}

}  // namespace
}  // namespace lamina
