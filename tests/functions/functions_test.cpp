// The op harness runs records. This is about what users call: that each folder has a function of its name, and that
// those which can be called with operands alone run their own record, over tensors and over vars.
#include <gtest/gtest.h>

#include <algorithm>

#include "lamina/autograd/tape.hpp"
#include "lamina/core/rng.hpp"
#include "lamina/core/trace.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_list.hpp"

// A folder without its function does not compile here.
namespace declared {
#define FUNCTION(folder, Record) using lamina::folder;
#include "functions.def"
#undef FUNCTION
}  // namespace declared

namespace lamina {
namespace {

// Values that every op of floating operands takes: positive, and none equal.
Tensor operand(const Device& device, std::uint64_t which) {
  const Rng rng(3, which);
  std::vector<float> values(12);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5f + rng.uniform(0, i);
  return Tensor::from(device, {3, 4}, values);
}

template <class X, class F, std::size_t... i>
auto call(F f, const std::vector<X>& x, std::index_sequence<i...>) {
  return f(x[i]...);
}
template <class F, class X, std::size_t... i>
constexpr bool callable(std::index_sequence<i...>) {
  return requires(F f, const X& x) {
    { f(((void)i, x)...) } -> std::same_as<X>;
  };
}

// The ops that ran on the device while f did.
template <class F>
std::vector<std::string> ops_of(const Device& device, F f) {
  Trace trace;
  device.set_trace(&trace);
  f();
  device.set_trace(nullptr);
  return trace.snapshot().names;
}

/// What is wrong with the function as one of `n` operands; "" also when it cannot be called like that.
template <std::size_t n, class F>
std::string wrong_with(std::string_view record, F f, int* looked_at) {
  using Indices = std::make_index_sequence<n>;
  if constexpr (!callable<F, Tensor>(Indices())) {
    return "";
  } else {
    const Device cpu = cpu_device({.threads = 1});
    std::vector<Tensor> x;
    for (std::size_t i = 0; i < n; ++i) x.push_back(operand(cpu, i));
    Tensor y;
    try {
      const auto names = ops_of(cpu, [&] { y = call(f, x, Indices()); });
      if (std::find(names.begin(), names.end(), record) == names.end()) return "does not run its record";
    } catch (const Error&) {  // takes other operands: indices, images
      return "";
    }
    ++*looked_at;
    if constexpr (!callable<F, Var>(Indices())) {
      return "cannot be called with vars";
    } else {
      Tape tape;
      std::vector<Var> vars;
      for (const Tensor& t : x) vars.push_back(tape.input(t));
      const Var over_vars = call(f, vars, Indices());
      if (to_vector<float>(over_vars.value()) != to_vector<float>(y)) return "gives something else over vars";
      Pass pass = tape.pass();
      pass.seed(over_vars, y);
      try {
        pass.run_all();
      } catch (const TapeError& e) {
        return e.what();
      }
      return pass.take(vars[0]) ? "" : "has no gradient";
    }
  }
}

template <Op O, class F>
void check_function(F f, int* looked_at) {
  EXPECT_EQ((wrong_with<1>(O::name, f, looked_at)), "") << O::name;
  EXPECT_EQ((wrong_with<2>(O::name, f, looked_at)), "") << O::name;
  EXPECT_EQ((wrong_with<3>(O::name, f, looked_at)), "") << O::name;
}

#define LAMINA_FUNCTION(folder) [](const auto&... x) -> decltype(lamina::folder(x...)) { return lamina::folder(x...); }

TEST(Functions, RunTheirOwnRecords) {
  int looked_at = 0;
#define FUNCTION(folder, Record) check_function<Record>(LAMINA_FUNCTION(folder), &looked_at);
#include "functions.def"
#undef FUNCTION
  EXPECT_GE(looked_at, 20);
}

TEST(Functions, SelfTest) {
  int looked_at = 0;
  EXPECT_EQ((wrong_with<1>("exp", LAMINA_FUNCTION(sqrt), &looked_at)), "does not run its record");
  auto of_tensors = [](const Tensor& x) { return exp(x); };
  EXPECT_EQ((wrong_with<1>("exp", of_tensors, &looked_at)), "cannot be called with vars");
  auto detached = []<TensorLike X>(const X& x) {
    if constexpr (std::is_same_v<X, Var>) return stop_gradient(exp(x));
    if constexpr (std::is_same_v<X, Tensor>) return exp(x);
  };
  EXPECT_EQ((wrong_with<1>("exp", detached, &looked_at)), "has no gradient");
  EXPECT_EQ((wrong_with<1>("exp", LAMINA_FUNCTION(exp), &looked_at)), "");
  EXPECT_EQ(looked_at, 3);
}

}  // namespace
}  // namespace lamina
