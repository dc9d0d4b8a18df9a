#include <gtest/gtest.h>

#include <thread>

#include "lamina/autograd/check.hpp"
#include "lamina/autograd/tape.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/kernels/shape_device.hpp"

namespace lamina {
namespace {

Tensor values(const Device& device, const Shape& shape, std::uint64_t seed, DType dtype = DType::f32) {
  const Rng rng(seed);
  std::vector<float> v(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(rng.normal(0, i));
  const Tensor t = Tensor::from(device, shape, v);
  return dtype == DType::f32 ? t : cast(t, dtype);
}

void expect_same_bits(const Tensor& a, const Tensor& b) {
  ASSERT_TRUE(a.defined() && b.defined());
  ASSERT_EQ(a.shape(), b.shape());
  EXPECT_EQ(to_vector<float>(a), to_vector<float>(b));
}

class TapeTest : public ::testing::Test {
 protected:
  Device cpu = cpu_device({.threads = 1});
};

// Two layers: tanh(x w1) w2, summed.
struct TwoLayers {
  explicit TwoLayers(const Device& d) : w1(values(d, {5, 7}, 1)), w2(values(d, {7, 3}, 2)), x(values(d, {4, 5}, 3)) {}
  Var loss(Tape& tape, const Var& in, Bind bind = Bind::pinned) const {
    return sum(matmul(tanh(matmul(in, tape.param(w1, bind))), tape.param(w2, bind)));
  }
  Param w1, w2;
  Tensor x;
};

TEST_F(TapeTest, GradientsAgreeWithDifferences) {
  const auto fn = [](Tape&, std::span<const Var> v) { return sum(tanh(matmul(v[0], v[1])) * v[2]); };
  const auto check = check_gradients(
      fn, {values(cpu, {3, 4}, 1, DType::f64), values(cpu, {4, 5}, 2, DType::f64), values(cpu, {5}, 3, DType::f64)});
  EXPECT_LT(check.worst, 1e-8) << check.where;
}

TEST_F(TapeTest, GradientCheckFindsAWrongGradient) {
  const auto fn = [](Tape& tape, std::span<const Var> v) {
    const Tensor x = v[0].value();
    return sum(tape.custom(
        v, [](TensorsIn in) -> Tensors { return {in[0] * in[0]}; },
        [x](TensorsIn dy, Needs) -> Tensors { return {dy[0] * x}; })[0]);  // 2 is missing
  };
  EXPECT_GT(check_gradients(fn, {values(cpu, {3}, 1, DType::f64)}).worst, 0.01);
}

TEST_F(TapeTest, AbsentIsNotZero) {
  TwoLayers net(cpu);
  Param unused(values(cpu, {2}, 9));
  Tape tape;
  const Var x = tape.input(net.x);
  tape.param(unused);
  const Gradients g = tape.backward(net.loss(tape, x));
  EXPECT_TRUE(g.of(net.w1).defined());
  EXPECT_TRUE(g.of(x).defined());
  EXPECT_FALSE(g.has(unused));
  EXPECT_FALSE(g.of(unused).defined());
}

TEST_F(TapeTest, SeedsOnAnyVarAddInCallOrder) {
  Tape tape;
  const Var x = tape.input(values(cpu, {6}, 1));
  const Var y = tanh(x);
  const Var z = y * 3.0;
  Pass pass = tape.pass();
  const Tensor s1 = values(cpu, {6}, 2), s2 = values(cpu, {6}, 3), s3 = values(cpu, {6}, 4);
  pass.seed(z, s1);
  pass.seed(y, s2);
  pass.seed(y, s3);
  pass.run({x});
  Tape plain;
  const Var u = plain.input(x.value());
  Pass expected = plain.pass();
  const Var v = tanh(u);
  expected.seed(v, (s2 + s3) + s1 * 3.0);
  expected.run({u});
  expect_same_bits(*pass.take(x), *expected.take(u));
}

TEST_F(TapeTest, SeedOfWrongShapeOrDtypeThrows) {
  Tape tape;
  const Var x = tape.input(values(cpu, {6}, 1));
  Pass pass = tape.pass();
  EXPECT_THROW(pass.seed(x, values(cpu, {5}, 1)), ShapeError);
  EXPECT_THROW(pass.seed(x, values(cpu, {6}, 1, DType::f64)), DTypeError);
}

TEST_F(TapeTest, TwoHalvesFromKeptCotangentsAreTheWholeBitForBit) {
  TwoLayers net(cpu);
  Tape whole_tape;
  const Var whole_x = whole_tape.input(net.x);
  const Gradients whole = whole_tape.backward(net.loss(whole_tape, whole_x));

  Tape tape;
  const Var x = tape.input(net.x);
  const Var loss = net.loss(tape, x);
  Pass pass = tape.pass();
  pass.seed(loss, Tensor::from(cpu, {}, {1.0f}));
  const auto flops = [&] { return cpu.counts().flops; };
  const auto before = flops();
  pass.run({x});
  const auto half = flops();
  EXPECT_FALSE(pass.take(net.w1).has_value());
  pass.run({tape.param(net.w1), tape.param(net.w2)});
  EXPECT_GT(half, before);
  EXPECT_GT(flops(), half);
  expect_same_bits(*pass.take(x), whole.of(whole_x));
  expect_same_bits(*pass.take(net.w1), whole.of(net.w1));
  expect_same_bits(*pass.take(net.w2), whole.of(net.w2));
}

// The gradient of a sum is one element repeated: a view between ops, dense for whoever reads it.
TEST_F(TapeTest, ARepeatedElementIsCopiedOnlyForThoseWhoReadIt) {
  const Param w(values(cpu, {3, 4}, 1));
  const Tensor x = values(cpu, {3, 4}, 2);
  Tape leaves;
  Gradients gradients = leaves.backward(sum(leaves.param(w)));
  ASSERT_TRUE(gradients.of(w).is_contiguous());
  EXPECT_EQ(to_vector<float>(gradients.take(w)), std::vector<float>(12, 1.0f));

  Tape tape;
  const Var in = tape.input(x), y = tanh(in), s = sum(y);
  Pass pass = tape.pass();
  pass.seed(s, Tensor::from(cpu, {}, {1.0f}));
  const auto before = cpu.counts().launches;
  pass.run({in});
  EXPECT_EQ(cpu.counts().launches - before, 1);  // tanh's alone
  pass.run({y});
  ASSERT_TRUE(pass.take(y)->is_contiguous());
  EXPECT_FALSE(pass.take(y).has_value());

  Tape customs;
  const Var a = customs.input(x);
  const Var b = customs.custom(
      {&a, 1}, [](TensorsIn v) -> Tensors { return {v[0] + v[0]}; },
      [](TensorsIn dy, Needs) -> Tensors {
        EXPECT_TRUE(dy[0].is_contiguous());
        return {dy[0] + dy[0]};
      })[0];
  EXPECT_EQ(to_vector<float>(customs.backward(sum(b)).of(a)), std::vector<float>(12, 2.0f));
}

TEST_F(TapeTest, TwoHalvesDoNoWorkTwice) {
  TwoLayers net(cpu);
  auto cost = [&](bool split) {
    Tape tape;
    const Var x = tape.input(net.x);
    const Var loss = net.loss(tape, x);
    Pass pass = tape.pass();
    pass.seed(loss, Tensor::from(cpu, {}, {1.0f}));
    const auto before = cpu.counts().flops;
    if (split) {
      pass.run({x});
      pass.run({tape.param(net.w1), tape.param(net.w2)});
      pass.run({x});  // already done
    } else {
      pass.run_all();
    }
    return cpu.counts().flops - before;
  };
  EXPECT_EQ(cost(true), cost(false));
}

TEST_F(TapeTest, SeveralPassesOnOneTape) {
  TwoLayers net(cpu);
  Tape tape;
  const Var x = tape.input(net.x);
  const Var y = matmul(tanh(matmul(x, tape.param(net.w1))), tape.param(net.w2));
  const Tensor a = values(cpu, {4, 3}, 5), b = values(cpu, {4, 3}, 6);
  auto gradient = [&](const Tensor& seed) {
    Pass pass = tape.pass();
    pass.seed(y, seed);
    pass.run_all();
    return *pass.take(net.w1);
  };
  const Tensor ga = gradient(a), gb = gradient(b);
  expect_same_bits(gradient(a), ga);
  const auto sum_of_gradients = to_vector<float>(ga + gb), of_sum = to_vector<float>(gradient(a + b));
  for (std::size_t i = 0; i < of_sum.size(); ++i) EXPECT_NEAR(sum_of_gradients[i], of_sum[i], 1e-5);
}

TEST_F(TapeTest, WantedSetsPruneWork) {
  TwoLayers net(cpu);
  auto cost = [&](bool inputs_only) {
    Tape tape;
    const Var x = tape.input(net.x);
    const Var loss = net.loss(tape, x);
    Pass pass = tape.pass();
    pass.seed(loss, Tensor::from(cpu, {}, {1.0f}));
    const auto before = cpu.counts().flops;
    inputs_only ? pass.run({x}) : pass.run_all();
    return cpu.counts().flops - before;
  };
  EXPECT_LT(cost(true), cost(false));
}

TEST_F(TapeTest, ConstantInputSavesOnlyWhatTheWeightNeeds) {
  Param w(values(cpu, {5, 7}, 1));
  Tape detached, attached;
  matmul(detached.constant(values(cpu, {4, 5}, 3)), detached.param(w));
  matmul(attached.input(values(cpu, {4, 5}, 3)), attached.param(w));
  EXPECT_EQ(detached.saved_bytes(), 4 * 5 * 4);              // x
  EXPECT_EQ(attached.saved_bytes(), 4 * 5 * 4 + 5 * 7 * 4);  // x and W
}

TEST_F(TapeTest, ReleaseAsUsedFreesWhatOnlyTheInputGradientNeeded) {
  Param w(values(cpu, {5, 7}, 1));
  Tape tape;
  const Var x = tape.input(values(cpu, {4, 5}, 3));
  const Var y = matmul(x, tape.param(w));
  Pass pass = tape.pass();
  pass.seed(y, values(cpu, {4, 7}, 4));
  pass.run({x}, Release::as_used);
  EXPECT_EQ(tape.saved_bytes(), 4 * 5 * 4);  // W is gone, x is still needed for dW
  pass.run({tape.param(w)}, Release::as_used);
  EXPECT_EQ(tape.saved_bytes(), 0);
}

TEST_F(TapeTest, BackwardConsumes) {
  TwoLayers net(cpu);
  Tape tape;
  const Var loss = net.loss(tape, tape.input(net.x));
  EXPECT_GT(tape.saved_bytes(), 0);
  tape.backward(loss);
  EXPECT_EQ(tape.saved_bytes(), 0);
}

TEST_F(TapeTest, PinnedHoldsItsVersionLateDoesNot) {
  TwoLayers net(cpu);
  for (const Bind bind : {Bind::pinned, Bind::late}) {
    Tape tape;
    const Var x = tape.input(net.x);
    const Var loss = net.loss(tape, x, bind);
    const Tensor old_w2 = net.w2.value();
    net.w2.set(values(cpu, {7, 3}, 20));
    const Tensor new_w2 = net.w2.value();
    const Gradients g = tape.backward(loss);
    // d loss / d hidden depends on the version of w2 that backward saw.
    Tape expected_tape;
    const Var hidden_in = expected_tape.input(net.x);
    const Var hidden = tanh(matmul(hidden_in, expected_tape.param(net.w1)));
    Pass pass = expected_tape.pass();
    const Tensor ones = Tensor::from(cpu, {4, 3}, std::vector<float>(12, 1.0f));
    pass.seed(hidden, matmul(ones, bind == Bind::pinned ? old_w2 : new_w2, {.transpose_b = true}));
    pass.run({hidden_in});
    expect_same_bits(g.of(x), *pass.take(hidden_in));
  }
}

TEST_F(TapeTest, LateBindingReachesDerivedValuesAndRebind) {
  Param w(values(cpu, {5, 7}, 1));
  Tape tape;
  const Var x = tape.input(values(cpu, {4, 5}, 3));
  const Var y = matmul(x, tape.param(w, Bind::late) * 2.0);
  EXPECT_EQ(tape.saved_bytes(), 4 * 5 * 4);  // nothing of w
  const Tensor rebound = values(cpu, {5, 7}, 30), seed = values(cpu, {4, 7}, 4);
  Pass pass = tape.pass();
  pass.seed(y, seed);
  pass.rebind(w, rebound);
  pass.run({x});
  expect_same_bits(*pass.take(x), matmul(seed, rebound * 2.0, {.transpose_b = true}));
  Pass other = tape.pass();
  Param pinned(values(cpu, {5, 7}, 1));
  EXPECT_THROW(other.rebind(pinned, rebound), TapeError);
}

TEST_F(TapeTest, PinnedParameterUpdatedBetweenTwoUsesIsAnError) {
  Param w(values(cpu, {5}, 1));
  Tape tape;
  tape.param(w);
  w.set(values(cpu, {5}, 2));
  EXPECT_THROW(tape.param(w), TapeError);
}

TEST_F(TapeTest, HoldingATapeForcesANewVersionAndDroppingItDoesNot) {
  Param w(values(cpu, {5, 7}, 1));
  Param* params[] = {&w};
  auto update_in_place = [&] {
    bool sole = false;
    update(params, [&](std::span<Tensor> v) { sole = v[0].sole(); });
    return sole;
  };
  {
    Tape tape;
    const Var y = matmul(tape.input(values(cpu, {4, 5}, 3)), tape.param(w));
    EXPECT_FALSE(update_in_place());  // saved for dx
  }
  EXPECT_TRUE(update_in_place());
  {
    Tape tape;
    const Var y = matmul(tape.constant(values(cpu, {4, 5}, 3)), tape.param(w));
    EXPECT_TRUE(update_in_place());  // dx cannot be wanted: nobody holds w
  }
}

TEST_F(TapeTest, FinalHooksFireLastLayerFirstAndOnlyForReached) {
  TwoLayers net(cpu);
  Param unused(values(cpu, {2}, 9));
  Tape tape;
  tape.param(unused);
  const Var loss = net.loss(tape, tape.constant(net.x));
  std::vector<const Param*> order;
  Pass pass = tape.pass();
  pass.on_final([&](const Param& p, const Tensor& g) {
    EXPECT_TRUE(g.defined());
    order.push_back(&p);
  });
  pass.seed(loss, Tensor::from(cpu, {}, {1.0f}));
  pass.run_all();
  EXPECT_EQ(order, (std::vector<const Param*>{&net.w2, &net.w1}));
}

TEST_F(TapeTest, SharedParameterIsFinalAfterItsEarliestUse) {
  Param w(values(cpu, {4, 4}, 1));
  Tape tape;
  const Var x = tape.constant(values(cpu, {2, 4}, 2));
  const Var y = matmul(tanh(matmul(x, tape.param(w))), tape.param(w));
  Pass pass = tape.pass();
  int fired = 0;
  Tensor final_gradient;
  pass.on_final([&](const Param&, const Tensor& g) {
    ++fired;
    final_gradient = g;
  });
  pass.seed(y, values(cpu, {2, 4}, 3));
  pass.run_all();
  EXPECT_EQ(fired, 1);
  expect_same_bits(final_gradient, *pass.take(w));
}

TEST_F(TapeTest, CustomRecordsWhatIsNoKernel) {
  Tape tape;
  const Var x = tape.input(values(cpu, {6}, 1));
  const Vars in = {x};
  const Vars y = tape.custom(
      in,
      [](TensorsIn v) -> Tensors {
        return {v[0] * 2.0, v[0] * 3.0};
      },
      [](TensorsIn dy, Needs) -> Tensors {
        Tensor g = dy[0] * 2.0;
        if (dy[1].defined()) g = g + dy[1] * 3.0;
        return {g};
      });
  const Gradients g = tape.backward(sum(y[0]));
  for (const float v : to_vector<float>(g.of(x))) EXPECT_EQ(v, 2);
}

TEST_F(TapeTest, RecomputeGivesTheSameBitsAndHoldsLess) {
  TwoLayers net(cpu);
  auto body = [&](Tape& tape, std::span<const Var> v) -> Vars {
    return {dropout(tanh(matmul(tanh(matmul(v[0], tape.param(net.w1))), tape.param(net.w2))),
                    {.rate = 0.5, .rng = Rng(1, 2, 3)})};
  };
  Tape plain, again;
  const Var px = plain.input(net.x), ax = again.input(net.x);
  const Var p_in[] = {px}, a_in[] = {ax};
  const Var p = sum(body(plain, p_in)[0]);
  const Var a = sum(recompute(a_in, body)[0]);
  expect_same_bits(p.value(), a.value());
  EXPECT_LT(again.saved_bytes(), plain.saved_bytes());
  const Gradients gp = plain.backward(p), ga = again.backward(a);
  expect_same_bits(gp.of(px), ga.of(ax));
  expect_same_bits(gp.of(net.w1), ga.of(net.w1));
  expect_same_bits(gp.of(net.w2), ga.of(net.w2));
}

TEST_F(TapeTest, RecomputeBindsPinnedOrLate) {
  for (const Bind bind : {Bind::pinned, Bind::late}) {
    Param w(values(cpu, {5, 5}, 1));
    Tape tape;
    const Var x = tape.input(values(cpu, {4, 5}, 3));
    const Var in[] = {x};
    const Vars y = recompute(
        in, [&](Tape& t, std::span<const Var> v) -> Vars { return {matmul(v[0], t.param(w))}; }, bind);
    const Tensor old_value = w.value();
    w.set(values(cpu, {5, 5}, 40));
    Pass pass = tape.pass();
    const Tensor seed = values(cpu, {4, 5}, 4);
    pass.seed(y[0], seed);
    pass.run({x});
    expect_same_bits(*pass.take(x), matmul(seed, bind == Bind::pinned ? old_value : w.value(), {.transpose_b = true}));
  }
}

TEST_F(TapeTest, InferenceTapesRecordNothing) {
  TwoLayers net(cpu);
  Tape tape(Tape::Mode::inference);
  const Var loss = net.loss(tape, tape.constant(net.x));
  EXPECT_EQ(tape.nodes(), 0u);
  EXPECT_EQ(tape.saved_bytes(), 0);
  EXPECT_THROW(tape.backward(loss), TapeError);
  Tape recorded;
  expect_same_bits(loss.value(), net.loss(recorded, recorded.constant(net.x)).value());
}

TEST_F(TapeTest, MisuseIsATypedError) {
  TwoLayers net(cpu);
  Tape a, b;
  const Var x = a.input(net.x), y = b.input(net.x);
  EXPECT_THROW(x + y, TapeError);
  EXPECT_THROW(a.backward(x), TapeError);                      // more than one element
  EXPECT_THROW(a.backward(sum(y)), TapeError);                 // another tape
  EXPECT_THROW(a.pass().run({a.constant(net.x)}), TapeError);  // a constant cannot be wanted
  Var left;
  {
    Tape gone;
    left = gone.input(net.x);
  }
  EXPECT_EQ(left.shape(), net.x.shape());  // the value outlives the tape
  EXPECT_THROW(tanh(left), TapeError);
}

TEST_F(TapeTest, TapesMove) {
  TwoLayers net(cpu);
  std::vector<Tape> tapes;
  tapes.emplace_back();
  const Var x = tapes[0].input(net.x);
  tapes.emplace_back();  // reallocates: the first tape moves
  const Var loss = net.loss(tapes[0], x);
  EXPECT_TRUE(tapes[0].backward(loss).of(x).defined());
}

TEST_F(TapeTest, TapesOnThreadsShareParameters) {
  TwoLayers net(cpu);
  Tape tape;
  const Tensor expected = tape.backward(net.loss(tape, tape.constant(net.x))).of(net.w1);
  std::vector<std::thread> threads;
  std::vector<Tensor> found(4);
  for (std::size_t t = 0; t < found.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Tape mine;
        found[t] = mine.backward(net.loss(mine, mine.constant(net.x))).of(net.w1);
      }
    });
  }
  for (auto& t : threads) t.join();
  for (const Tensor& t : found) expect_same_bits(t, expected);
}

TEST_F(TapeTest, SnapshotsNeverMixVersions) {
  Param a(Tensor::from(cpu, {1}, {0.0f})), b(Tensor::from(cpu, {1}, {0.0f}));
  Param* both[] = {&a, &b};
  share_lock(both);
  std::atomic<bool> stop{false}, reading{false};
  std::thread writer([&] {
    while (!reading) std::this_thread::yield();
    for (int i = 1; i <= 2000; ++i) {
      update(both, [&](std::span<Tensor> v) {
        for (Tensor& t : v) {
          if (t.sole()) {
            host_mut<float>(t)[0] = static_cast<float>(i);
          } else {
            t = Tensor::from(cpu, {1}, {static_cast<float>(i)});
          }
        }
      });
    }
    stop = true;
  });
  int mixed = 0, reads = 0;
  while (!stop) {
    const Snapshot s = snapshot(both);
    mixed += host<float>(s.values[0])[0] != host<float>(s.values[1])[0] || s.versions[0] != s.versions[1] ? 1 : 0;
    ++reads;
    reading = true;
  }
  writer.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(reads, 0);
}

TEST_F(TapeTest, ReshapeIsAView) {
  Tape tape;
  const Var x = tape.input(values(cpu, {4, 6}, 1));
  const Var y = reshape(x, {2, -1});
  EXPECT_TRUE(y.value().shares_storage(x.value()));
  EXPECT_EQ(y.shape(), (Shape{2, 12}));
  Pass pass = tape.pass();
  pass.seed(y, values(cpu, {2, 12}, 2));
  pass.run({x});
  EXPECT_EQ(pass.take(x)->shape(), (Shape{4, 6}));
}

TEST_F(TapeTest, ShapeDeviceGivesShapesAndCost) {
  const Device shape = shape_device();
  Param w(Tensor::empty(shape, {4096, 4096}));
  Tape tape;
  const Var y = matmul(tape.input(Tensor::empty(shape, {128, 4096})), tape.param(w));
  EXPECT_EQ(y.shape(), (Shape{128, 4096}));
  EXPECT_EQ(shape.counts().flops, 2ll * 128 * 4096 * 4096);
  tape.backward(sum(y));
  EXPECT_GT(shape.counts().flops, 3 * 2ll * 128 * 4096 * 4096);
  EXPECT_EQ(shape.memory().live_bytes, 0);
}

}  // namespace
}  // namespace lamina
